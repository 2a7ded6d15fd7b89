import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { PACKAGE } from "../src/fixtures/places.js";

test("the messages here are those that the proto files of today make", () => {
  const folder = mkdtempSync(join(tmpdir(), "bcd-ts-proto-"));
  try {
    execFileSync(process.execPath, ["--import", "tsx", "src/proto.ts", folder], { cwd: PACKAGE });
    for (const name of ["statements", "attestation", "join", "gateway"]) {
      const file = `bc/identity/v1/${name}_pb.ts`;
      assert.equal(readFileSync(`${folder}/${file}`, "utf8"), readFileSync(`${PACKAGE}/src/pb/${file}`, "utf8"), `${file}: npm run proto`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

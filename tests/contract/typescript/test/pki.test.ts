import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { calculateJwkThumbprint } from "jose";
import { SignedStatementSchema } from "../src/pb/bc/identity/v1/statements_pb.js";
import { keys, pins, token } from "../src/fixtures/world.js";
import { REPOSITORY } from "../src/fixtures/places.js";
import { equal, fromHex, hex } from "../src/pki/bytes.js";
import { readRequest } from "../src/pki/csr.js";
import { coordinates, keyOfScalar, newKey, readPublicKey } from "../src/pki/keys.js";
import { openJoinResponse } from "../src/pki/answer.js";
import { Refused } from "../src/pki/refused.js";
import { sealInfo, unseal } from "../src/pki/seal.js";
import { readStatement, toBeSigned, verifyStatement } from "../src/pki/statement.js";
import { isOwnToken } from "../src/pki/token.js";

/** The worked examples that the page names; fields in hex. */
function golden(...path: string[]): string {
  let value: unknown = JSON.parse(readFileSync(`${REPOSITORY}/tests/contract/wire/golden.json`, "utf8"));
  for (const name of path) value = typeof value === "object" && value !== null ? Object.entries(value).find(([one]) => one === name)?.[1] : undefined;
  if (typeof value !== "string") throw new TypeError(path.join("."));
  return value;
}

test("the page's worked examples: key, pin, kid", () => {
  for (const name of ["node_key", "encryption_key"]) {
    const key = keyOfScalar(fromHex(golden(name, "secret")));
    assert.equal(hex(key.spki), golden(name, "spki"));
    assert.equal(key.pin, golden(name, "pin"));
    assert.equal(key.kid, golden(name, "kid"));
  }
});

test("the page's worked examples: request, statement, sealed token", async () => {
  const csr = fromHex(golden("csr"));
  assert.equal(readRequest(csr).pin, golden("node_key", "pin"));
  const statement = readStatement(fromHex(golden("statement", "wire")), 1);
  const { payload } = verifyStatement(statement, "renew-pop", [golden("node_key", "pin")]);
  assert.equal(hex(toBeSigned("renew-pop", payload)), golden("statement", "to_be_signed"));
  assert.equal(hex(sealInfo(csr)), golden("sealed_token", "info"));
  const recipient = keyOfScalar(fromHex(golden("encryption_key", "secret")));
  const opened = await unseal(fromHex(golden("sealed_token", "sealed")), csr, recipient);
  assert.equal(opened, golden("sealed_token", "token"));
});

test("a kid is the thumbprint that a JOSE library computes", async () => {
  for (const key of Object.values(keys)) {
    assert.equal(await calculateJwkThumbprint({ kty: "EC", crv: "P-256", ...coordinates(key.spki) }), key.kid);
  }
});

test("a new key reads back as itself", () => {
  for (let n = 0; n < 20; n += 1) {
    const key = newKey();
    assert.ok(equal(readPublicKey(key.spki).spki, key.spki));
  }
});

test("a statement of more than 1 MiB is check 1, one of exactly 1 MiB is not", () => {
  const size = (payload: number): Uint8Array =>
    toBinary(SignedStatementSchema, create(SignedStatementSchema, { payload: new Uint8Array(payload) }));
  const asked = { csr: new Uint8Array(), role: "node", joinSigningPins: pins };
  const check = (bytes: Uint8Array): unknown => {
    try {
      return openJoinResponse(bytes, asked);
    } catch (error) {
      return error instanceof Refused ? error.check : error;
    }
  };
  const head = size(1 << 19).length - (1 << 19);
  assert.equal(check(size((1 << 20) - head)), 2);
  assert.equal(check(size((1 << 20) - head + 1)), 1);
});

test("the shape of the control plane's own tokens", () => {
  assert.ok(isOwnToken(token));
  for (const other of [token.slice(0, -1), `${token}A`, token.replace("bcjt", "bcjx"), token.replace("abcdefghij", "abcdefghi1")]) {
    assert.ok(!isOwnToken(other), other);
  }
});

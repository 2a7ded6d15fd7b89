import assert from "node:assert/strict";
import { test } from "node:test";
import { readFolder } from "../src/fixtures/check.js";
import { Input, type Fixture } from "../src/fixtures/format.js";
import { FROM_TYPESCRIPT } from "../src/fixtures/places.js";
import { fromBase64 } from "../src/pki/bytes.js";
import { checkSvid } from "../src/pki/svid.js";

const fixtures = readFolder(FROM_TYPESCRIPT);

function leafOf(fixture: Fixture): Uint8Array | undefined {
  if (fixture.kind === "leaf") return new Input(fixture.input).bytes("certificate");
  const chain = fixture.values?.["chain"];
  const first: unknown = Array.isArray(chain) ? chain[0] : undefined;
  return typeof first === "string" ? fromBase64(first) : undefined;
}

test("every leaf that a fixture takes keeps the X.509-SVID rules", () => {
  const leaves = fixtures.flatMap((one) => (one.expect === "ok" ? [leafOf(one) ?? []] : [])).filter((one) => one instanceof Uint8Array);
  for (const leaf of leaves) checkSvid(leaf);
  assert.ok(leaves.length >= 10);
});

/** Faults that the standard knows too. */
const AGAINST_THE_STANDARD = ["two URIs", "no SAN", "CA", "keyCertSign too", "no keyUsage", "URI of another scheme", "keyAgreement alone"];

test("the rules refuse what the standard refuses, so the check above is one", () => {
  for (const name of AGAINST_THE_STANDARD) {
    const fixture = fixtures.find((one) => one.kind === "leaf" && one.name === name);
    assert.ok(fixture, name);
    assert.throws(() => checkSvid(leafOf(fixture) ?? new Uint8Array()), name);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { ChallengeAnswerSchema } from "../src/pb/bc/identity/v1/join_pb.js";
import { readFolder } from "../src/fixtures/check.js";
import { flips, tally, type Outcome } from "../src/fixtures/flip.js";
import { Input, values, type Fixture } from "../src/fixtures/format.js";
import { OPENERS } from "../src/fixtures/open.js";
import { FROM_PYTHON, FROM_TYPESCRIPT } from "../src/fixtures/places.js";
import * as tpm from "../src/fixtures/tpmworld.js";
import { makeCredential, openCredential } from "../src/tpm/credential.js";
import { keys } from "../src/fixtures/world.js";

const fixtures = [FROM_TYPESCRIPT, FROM_PYTHON].map(readFolder);

function plain(kind: string): Fixture {
  const found = fixtures[0]?.find((one) => one.kind === kind && one.name === "plain");
  assert.ok(found, kind);
  return found;
}

const flipField = async ({ kind, input }: Fixture, field: string): Promise<Outcome[]> => {
  const open = OPENERS[kind];
  assert.ok(open);
  return flips(new Input(input).bytes(field), (flipped) => open(new Input({ ...input, ...values({ [field]: flipped }) })));
};

const accepted = (outcomes: readonly Outcome[]): number[] => outcomes.filter((one) => one.check === undefined).map((one) => one.at);

for (const [kind, field] of [["tpm-answer", "answer"], ["key-attestation", "keyAttestation"], ["tpm-credential", "credential"], ["tpm-credential", "encryptedSecret"]] as const) {
  test(`every byte flipped is refused: ${kind}, ${field}`, async (t) => {
    for (const fixture of fixtures.flat().filter((one) => one.kind === kind && ["plain", "P-256"].includes(one.name))) {
      const outcomes = await flipField(fixture, field);
      t.diagnostic(`${fixture.name}: ${tally(outcomes)}`);
      assert.deepEqual(accepted(outcomes), []);
    }
  });
}

/** Where fields begin that are recorded and decide nothing, and their length. */
function recorded(attest: Uint8Array, signerLength: number, dataLength: number): Set<number> {
  const [signer, clock] = [8, 8 + signerLength + 2 + dataLength];
  assert.ok(attest.length > clock + 25);
  return new Set([...Array.from({ length: signerLength }, (_, n) => signer + n), ...Array.from({ length: 25 }, (_, n) => clock + n)]);
}

test("every byte of a quote or a certification flipped and signed anew is refused, but for the signer's name and the clock", async (t) => {
  const { kind, input } = plain("tpm-answer");
  const open = OPENERS[kind];
  assert.ok(open);
  const answered = (parts: Parameters<typeof tpm.answer>[0]): Input =>
    new Input({ ...input, ...values({ answer: toBinary(ChallengeAnswerSchema, create(ChallengeAnswerSchema, tpm.answer(parts))) }) });
  const quote = tpm.quoteBytes();
  const quotes = await flips(quote, (flipped) => open(answered({ quote: tpm.signedAttest(flipped) })));
  t.diagnostic(tally(quotes));
  assert.deepEqual(new Set(accepted(quotes)), recorded(quote, 34, 32));
  const certification = tpm.certificationBytes();
  const certifications = await flips(certification, (flipped) => open(answered({ certification: tpm.signedAttest(flipped) })));
  t.diagnostic(tally(certifications));
  const passed = recorded(certification, 34, 32);
  // The qualified name, which says below which parent the key lies.
  for (let at = certification.length - 34; at < certification.length; at += 1) passed.add(at);
  assert.deepEqual(new Set(accepted(certifications)), passed);
});

test("each row of a key attestation from 17 to 24 refuses a fixture of either side", () => {
  for (const folder of fixtures) {
    const rows = folder.flatMap(({ kind, expect }) => (kind === "key-attestation" && expect !== "ok" ? [expect.row] : []));
    for (let row = 17; row <= 24; row += 1) assert.ok(rows.includes(row), `row ${row}`);
  }
});

test("a secret of 32 bytes goes through a credential for either key, and is 68 bytes there", () => {
  const name = tpm.areas.attestation.name;
  for (const [area, opener] of [[tpm.areas.rsa, tpm.tpmKeys.rsa], [tpm.areas.ecc, tpm.tpmKeys.ecc]] as const) {
    const made = makeCredential(area, name, keys.node.scalar, tpm.random);
    assert.equal(made.credential.length, 68);
    assert.deepEqual(openCredential(opener, name, made), keys.node.scalar);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { JoinResponseSchema, TrustBundleSchema } from "../src/pb/bc/identity/v1/statements_pb.js";
import { readFolder } from "../src/fixtures/check.js";
import { flips, oneAndAll, oneBit, tally, type Outcome } from "../src/fixtures/flip.js";
import { Input, values, type Fixture } from "../src/fixtures/format.js";
import { OPENERS } from "../src/fixtures/open.js";
import { FROM_TYPESCRIPT } from "../src/fixtures/places.js";
import { keys, pins } from "../src/fixtures/world.js";
import { openJoinResponse } from "../src/pki/answer.js";
import { concat, equal, sha256, utf8 } from "../src/pki/bytes.js";
import { readBundle } from "../src/pki/bundle.js";
import { readStatement, signStatement, type Purpose } from "../src/pki/statement.js";
import { statementBytes } from "../src/fixtures/world.js";
import { readMessage } from "../src/pki/wire.js";

/** Positions where a flip may be accepted, and why. */
interface Passed {
  readonly from: number;
  readonly to: number;
  readonly why: string;
}

const fixtures = readFolder(FROM_TYPESCRIPT);

function plain(kind: string): Fixture {
  const found = fixtures.find((one) => one.kind === kind && one.name === "plain");
  assert.ok(found, kind);
  return found;
}

function find(bytes: Uint8Array, part: Uint8Array, why: string): Passed {
  const from = Buffer.from(bytes).indexOf(part);
  assert.ok(from >= 0, why);
  return { from, to: from + part.length, why };
}

/** Everything else is refused; what was accepted is told with its reason. */
function checkAccepted(outcomes: readonly Outcome[], passed: readonly Passed[], tell: (line: string) => void): void {
  tell(tally(outcomes));
  const accepted = [...new Set(outcomes.filter((one) => one.check === undefined).map((one) => one.at))];
  const stray = accepted.filter((at) => !passed.some((one) => one.from <= at && at < one.to));
  assert.deepEqual(stray, [], "positions where a flip is accepted");
  for (const { from, to, why } of passed) {
    const within = accepted.filter((at) => from <= at && at < to);
    if (within.length > 0) tell(`accepted at ${within.length} of ${from} to ${to - 1}: ${why}`);
  }
  if (accepted.length === 0) tell("accepted at no position");
}

const STATEMENTS = ["statement", "trust-bundle", "join-response", "renew-response", "renew-pop"] as const;
const FIELDS: readonly (readonly [kind: string, field: string])[] = [
  ["csr", "csr"], ["sealed-token", "sealed"], ...STATEMENTS.map((kind) => [kind, "statement"] as const),
];

/** One fixture of a kind in one bit and in all eight of each byte, the others in one bit. Not the longest sealed token: 4096
 * bytes more of one AES-GCM ciphertext are 20 s of the same. */
const SIGNED_OR_SEALED = FIELDS.flatMap(([kind, field]) =>
  fixtures.filter((one) => one.kind === kind && one.expect === "ok" && one.name !== "longest").map((one) => [one, field] as const));

for (const [{ kind, name, input }, field] of SIGNED_OR_SEALED) {
  test(`every byte flipped is refused: ${kind}, ${name}`, async (t) => {
    const open = OPENERS[kind];
    assert.ok(open);
    const bytes = new Input(input).bytes(field);
    const masks = name === "plain" ? oneAndAll : oneBit;
    const outcomes = await flips(bytes, (flipped) => open(new Input({ ...input, ...values({ [field]: flipped }) })), masks);
    assert.equal(outcomes.length, masks(0).length * bytes.length);
    const passed: Passed[] = [];
    if (field === "statement") {
      // The first field, with its tag and length; and what a later version put after the last one.
      const { purpose } = readStatement(bytes, 1);
      if (purpose !== "") passed.push({ ...find(bytes, utf8(purpose), "the field purpose is for people"), from: 0 });
      if (name === "unknown field") passed.push({ from: bytes.length - 6, to: bytes.length, why: "an unknown field is passed over" });
    }
    checkAccepted(outcomes, passed, (line) => t.diagnostic(line));
  });
}

/** The statement around `payload`, signed by the right key: what a flip inside meets behind check 4. */
const resigned = (purpose: Purpose, payload: Uint8Array): Uint8Array => statementBytes(signStatement(purpose, payload, keys.signing));

test("every byte of a JoinResponse flipped and signed anew is refused by a later check", async (t) => {
  const input = new Input(plain("join-response").input);
  const { payload } = readStatement(input.bytes("statement"), 1);
  const asked = { csr: input.bytes("csr"), role: "node", wantedNodeId: "n-1", joinSigningPins: pins };
  const outcomes = await flips(payload, (flipped) => openJoinResponse(resigned("join-response", flipped), asked));
  const response = readMessage(JoinResponseSchema, payload);
  const [, ca] = response.chain;
  assert.ok(ca !== undefined && response.trustBundle !== undefined);
  const inner = find(payload, statementBytes(response.trustBundle), "trust bundle");
  const passed = [
    find(payload, ca, "the node CA: nothing pins it and no certificate above it is in the chain; the signature around it is what holds"),
    { from: inner.from, to: inner.from + "trust-bundle".length + 2, why: "the bundle's field purpose is for people" },
    { from: inner.to, to: payload.length, why: "server_time: another time at which the chain is in date" },
  ];
  // The leaf lies between the hash and the CA, and is covered byte for byte by the CA's signature.
  checkAccepted(outcomes, passed, (line) => t.diagnostic(line));
  assert.ok(outcomes.some((one) => one.check === 7) && outcomes.some((one) => one.check === 11) && outcomes.some((one) => one.check === 6));
  assert.ok(equal(response.csrSha256, sha256(asked.csr)));
});

test("every byte of a TrustBundle flipped: what is no key or no bundle of the trust domain is refused", async (t) => {
  const input = new Input(plain("trust-bundle").input);
  const { payload } = readStatement(input.bytes("statement"), 1);
  const outcomes = await flips(payload, (flipped) => readBundle(flipped, "example.org"));
  const { commandRoots, approvers } = readMessage(TrustBundleSchema, payload);
  const [root] = commandRoots;
  const [approver] = approvers;
  assert.ok(root !== undefined && approver !== undefined);
  const first = find(payload, concat(Uint8Array.of(0x1a, root.length), root), "");
  const kid = find(payload, concat(Uint8Array.of(0x0a, 43), utf8(approver.kid), Uint8Array.of(0x12, 91), approver.spki), "");
  const passed = [
    { from: first.from - 2, to: first.from, why: "version: another number" },
    { from: first.from, to: first.from + 1, why: "the tag of command_roots: an unknown field, no roots" },
    { from: kid.from - 2, to: kid.from - 1, why: "the tag of approvers: an unknown field, no approvers" },
    { from: kid.to, to: payload.length, why: "an approver's name, the quorum, issued_at: other values" },
  ];
  checkAccepted(outcomes, passed, (line) => t.diagnostic(line));
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import { JoinRequestSchema, type JoinChallenge, type JoinRequest } from "../src/pb/bc/identity/v1/join_pb.js";
import { statementBytes } from "../src/fixtures/world.js";
import { GatewayClient } from "../src/peer/gatewayclient.js";
import { JoinClient, type Outcome } from "../src/peer/joinclient.js";
import { Plane, type NodeFiles } from "../src/peer/plane.js";
import { SoftTpm } from "../src/peer/softtpm.js";
import { openJoinResponse, openRenewResponse, type Answer } from "../src/pki/answer.js";
import { makeRequest } from "../src/pki/csr.js";
import { newKey, type PrivateKey } from "../src/pki/keys.js";
import { readLeaf } from "../src/pki/leaf.js";
import { attestationKeyText } from "../src/tpm/answer.js";

const folder = mkdtempSync(join(tmpdir(), "bcd-ts-tpm-"));
const open: GatewayClient[] = [];
const tpm = new SoftTpm("a node here");
let plane: Plane;
let files: NodeFiles;
let joining: JoinClient;

before(async () => {
  plane = await Plane.start(folder, "py.example");
  files = await plane.nodeFiles(folder);
  joining = await JoinClient.open(files);
});

after(async () => {
  for (const one of open) one.close();
  joining?.close();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const allow = (called: string): Promise<string> => plane.does(["ek", "allow"], "--site", "lab", called);

function request(of: SoftTpm, key: PrivateKey, certified: PrivateKey | undefined): JoinRequest {
  return create(JoinRequestSchema, { attestor: "tpm", csr: makeRequest(key), role: "node", daemonVersion: "typescript", tpmEvidence: of.evidence(certified) });
}

async function challenged(asked: JoinRequest): Promise<JoinChallenge> {
  const outcome = await joining.call(asked);
  assert.ok("reply" in outcome && outcome.reply.answer.case === "challenge", "refusal" in outcome ? outcome.refusal.text : "no challenge");
  return outcome.reply.answer.value;
}

function issued(asked: JoinRequest, outcome: Outcome): Answer {
  assert.ok("reply" in outcome && outcome.reply.answer.case === "issued", "refusal" in outcome ? outcome.refusal.text : "no certificate");
  return openJoinResponse(statementBytes(outcome.reply.answer.value), { csr: asked.csr, role: "node", joinSigningPins: joining.signingPins });
}

async function joined(of: SoftTpm, key: PrivateKey, certified: PrivateKey | undefined): Promise<Answer> {
  const asked = request(of, key, certified);
  const challenge = await challenged(asked);
  return issued(asked, await joining.call({ ...asked, challengeAnswer: of.answer(challenge, asked.csr, certified) }));
}

test("a TPM that nobody spoke of is refused for good", async () => {
  const key = newKey();
  const outcome = await joining.call(request(new SoftTpm("nobody's"), key, key));
  assert.ok("refusal" in outcome && outcome.refusal.final);
});

for (const [what, which] of [["RSA", 0], ["P-256", 1]] as const) {
  test(`an allowed TPM joins by its endorsement key of ${what}: it opens the credential, and the leaf names its attestation key`, async () => {
    const of = new SoftTpm(`allowed by ${what}`);
    await allow(of.called[which] ?? "");
    const key = newKey();
    const { leaf } = await joined(of, key, key);
    assert.equal(leaf.attestationKey, attestationKeyText(of.area));
  });
}

test("a machine whose key is a file proves its TPM, and its leaf names no attestation key", async () => {
  const of = new SoftTpm("a key in a file");
  await allow(of.called[0] ?? "");
  assert.equal((await joined(of, newKey(), undefined)).leaf.attestationKey, undefined);
});

test("an answer with another secret is refused, and so is the right one after it", async () => {
  const of = new SoftTpm("another secret");
  await allow(of.called[1] ?? "");
  const key = newKey();
  const asked = request(of, key, key);
  const answer = of.answer(await challenged(asked), asked.csr, key);
  for (const challengeAnswer of [{ ...answer, secret: new Uint8Array(32) }, answer]) {
    const outcome = await joining.call({ ...asked, challengeAnswer });
    assert.ok("refusal" in outcome && outcome.refusal.final);
  }
});

test("a leaf that names an attestation key is renewed for a key that this one certified, and for no other", async () => {
  await allow(tpm.called[0] ?? "");
  const key = newKey();
  const { chain, leaf: held } = await joined(tpm, key, key);
  const client = await GatewayClient.open(files, { chain, key });
  open.push(client);
  const [next, other] = [newKey(), newKey()];
  const csr = makeRequest(next);
  for (const keyAttestation of [undefined, tpm.keyAttestation(other, csr), tpm.keyAttestation(next, makeRequest(other)), new SoftTpm("another").keyAttestation(next, csr)]) {
    const outcome = await client.renew(client.request(next, keyAttestation === undefined ? { csr } : { csr, keyAttestation }));
    assert.ok("end" in outcome && outcome.end.code === status.FAILED_PRECONDITION);
  }
  const outcome = await client.renew(client.request(next, { csr, keyAttestation: tpm.keyAttestation(next, csr) }));
  assert.ok("reply" in outcome && outcome.reply.issued !== undefined);
  const { leaf } = openRenewResponse(statementBytes(outcome.reply.issued), { csr, held: readLeaf(held.der), joinSigningPins: joining.signingPins });
  assert.equal(leaf.attestationKey, attestationKeyText(tpm.area));
});

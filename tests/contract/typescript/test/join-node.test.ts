import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import { JoinRequestSchema, type JoinReply, type JoinRequest } from "../src/pb/bc/identity/v1/join_pb.js";
import { readFolder } from "../src/fixtures/check.js";
import { Input } from "../src/fixtures/format.js";
import { FROM_TYPESCRIPT } from "../src/fixtures/places.js";
import { statementBytes } from "../src/fixtures/world.js";
import { handshake, findServingCa } from "../src/peer/channel.js";
import { JoinClient, type Outcome, type Refusal } from "../src/peer/joinclient.js";
import { Plane } from "../src/peer/plane.js";
import { openJoinResponse, type Answer } from "../src/pki/answer.js";
import { equal } from "../src/pki/bytes.js";
import { makeRequest } from "../src/pki/csr.js";
import { newKey } from "../src/pki/keys.js";
import { isOwnToken } from "../src/pki/token.js";
import { Refused } from "../src/pki/refused.js";
import { checkSvid } from "../src/pki/svid.js";
import { readMessage } from "../src/pki/wire.js";

const folder = mkdtempSync(join(tmpdir(), "bcd-ts-plane-"));
let plane: Plane;
let node: JoinClient;

before(async () => {
  plane = await Plane.start(folder, "py.example");
  node = await JoinClient.open(await plane.nodeFiles(folder));
});

after(async () => {
  node?.close();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function replied(outcome: Outcome): JoinReply {
  if ("refusal" in outcome) assert.fail(`refused: ${outcome.refusal.text}`);
  return outcome.reply;
}

function open(request: JoinRequest, outcome: Outcome): Answer {
  const reply = replied(outcome);
  assert.ok(reply.answer.case === "issued");
  const wanted = request.wantedNodeId === "" ? {} : { wantedNodeId: request.wantedNodeId };
  return openJoinResponse(statementBytes(reply.answer.value), { csr: request.csr, role: request.role, joinSigningPins: node.signingPins, ...wanted });
}

function refused(outcome: Outcome): Refusal {
  assert.ok("refusal" in outcome, "accepted");
  const { refusal } = outcome;
  assert.equal(refusal.code, status.PERMISSION_DENIED);
  assert.equal(refusal.text, "Join refused");
  assert.ok(refusal.final);
  assert.match(refusal.refusalId ?? "", /^[0-9a-f]{32}$/);
  return refusal;
}

test("the join port speaks TLS 1.3 and h2, takes TLS_AES_256_GCM_SHA384, and presents the pinned CA", async () => {
  const files = await plane.nodeFiles(folder);
  const port = Number(files.values.get("join")?.split(":").at(-1));
  assert.equal(node.handshake.suite, "TLS_AES_256_GCM_SHA384");
  const seen = await handshake(port, "TLS_AES_256_GCM_SHA384");
  assert.deepEqual([seen.suite, seen.protocol, seen.alpn], ["TLS_AES_256_GCM_SHA384", "TLSv1.3", "h2"]);
  assert.equal(findServingCa(seen.chain, [files.values.get("serving_ca_spki_pin") ?? ""]).toString(), files.servingCa);
  assert.throws(() => findServingCa(seen.chain, [files.values.get("join_signing_key_pin") ?? ""]), Refused);
});

test("a node joins with a token; the answer passes the eleven checks, the leaf the X.509-SVID rules", async () => {
  const token = await plane.token();
  assert.ok(isOwnToken(token));
  const request = await node.request(token);
  const answer = open(request, await node.call(request));
  assert.equal(answer.leaf.id.trustDomain, "py.example");
  assert.equal(answer.leaf.id.siteId, "lab");
  checkSvid(answer.leaf.der);
  assert.ok((await plane.does(["nodes", "list"])).includes(answer.leaf.id.nodeId));
});

test("a repeated request gets the same certificate; another key with the token is refused", async () => {
  const token = await plane.token();
  const request = await node.request(token);
  const one = open(request, await node.call(request));
  const two = open(request, await node.call(request));
  assert.ok(equal(one.leaf.der, two.leaf.der));
  const other = refused(await node.call(await node.request(token)));
  assert.ok((await plane.does(["refusals", "list"])).length > 0);
  assert.ok(other.refusalId !== undefined);
});

test("the same token and key sealed anew get the same certificate", async () => {
  const token = await plane.token();
  const key = newKey();
  const first = await node.request(token, {}, key);
  const again = await node.request(token, {}, key);
  const one = open(first, await node.call(first));
  const two = open(again, await node.call(again));
  assert.ok(equal(one.leaf.der, two.leaf.der));
});

test("a key that was certified before is refused with another token", async () => {
  const key = newKey();
  const first = await node.request(await plane.token(), {}, key);
  open(first, await node.call(first));
  refused(await node.call(await node.request(await plane.token(), {}, key)));
});

test("every role, and a token for one node", async () => {
  for (const role of ["site", "ramdisk"]) {
    const request = await node.request(await plane.token("--role", role), { role });
    const { leaf } = open(request, await node.call(request));
    assert.equal(leaf.role, role);
    checkSvid(leaf.der);
  }
  const token = await plane.token("--node-id", "n-42");
  const provisioned = await node.request(token, { attestor: "provisioned", wantedNodeId: "n-42" });
  assert.equal(open(provisioned, await node.call(provisioned)).leaf.id.nodeId, "n-42");
});

test("a person decides: pending, then issued to the same request", async () => {
  const request = await node.request(await plane.token("--require-approval"));
  const { answer } = replied(await node.call(request));
  assert.ok(answer.case === "pending");
  const { id } = answer.value;
  await plane.does(["approvals", "approve"], id);
  const again = create(JoinRequestSchema, { ...request, pendingId: id });
  open(again, await node.call(again));
});

test("one refusal for every reason", async () => {
  const token = await plane.token();
  const bound = await plane.token("--node-id", "n-43");
  const cases: readonly (readonly [why: string, request: JoinRequest])[] = [
    ["a token nobody made", await node.request(`bcjt_${"a".repeat(10)}_${"A".repeat(43)}`)],
    ["another role than the token's", await node.request(token, { role: "site" })],
    ["sealed to another request", await node.request(token, { csr: makeRequest(newKey()) })],
    ["another node than the token's", await node.request(bound, { attestor: "provisioned", wantedNodeId: "n-44" })],
    ["an attestor of a later version", await node.request(token, { attestor: "tpm" })],
    ["no sealed token", create(JoinRequestSchema, { ...(await node.request(token)), sealedToken: undefined })],
  ];
  const details: Buffer[] = [];
  for (const [why, request] of cases) {
    const outcome = await node.call(request);
    assert.ok("refusal" in outcome, why);
    details.push(refused(outcome).details ?? Buffer.alloc(0));
  }
  for (const one of details) assert.deepEqual(one, details[0]);
  // The token is still good: none of these used it up.
  const request = await node.request(token);
  open(request, await node.call(request));
});

const malformed = readFolder(FROM_TYPESCRIPT).filter((one) => one.kind === "join-request" && one.expect !== "ok");

test("a request out of the bounds of the page is refused, whichever bound it is", async (t) => {
  const token = await plane.token("--uses", "100");
  const taken: string[] = [];
  for (const fixture of malformed) {
    const base = await node.request(token);
    const { csr, sealedToken, $typeName, $unknown, ...rest } = readMessage(JoinRequestSchema, new Input(fixture.input).bytes("request"));
    // Fixtures are sealed to their own key: the fault is kept, and all around it is what this control plane takes.
    const faulty = fixture.expect !== "ok" && (fixture.expect.check === "csr" || fixture.expect.check === "sealed_token");
    const request = faulty
      ? create(JoinRequestSchema, { ...base, ...(fixture.expect.check === "csr" ? { csr } : { sealedToken }) })
      : create(JoinRequestSchema, { ...base, ...rest });
    const outcome = await node.call(request);
    if ("reply" in outcome) taken.push(fixture.name);
    else t.diagnostic(`${fixture.name}: ${status[outcome.refusal.code]}${outcome.refusal.final ? ", final" : ""}`);
  }
  assert.deepEqual(taken, []);
});

test("a request for a certificate that is not as the page has it is refused", async () => {
  const token = await plane.token("--uses", "100");
  const requests = readFolder(FROM_TYPESCRIPT).filter((one) => one.kind === "csr" && one.expect !== "ok");
  for (const fixture of requests) refused(await node.call(await node.requestFor(new Input(fixture.input).bytes("csr"), token)));
  assert.ok(requests.length > 5);
});

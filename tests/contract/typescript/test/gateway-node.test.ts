import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { toBinary } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import type { RenewRequest } from "../src/pb/bc/identity/v1/gateway_pb.js";
import { SignedStatementSchema } from "../src/pb/bc/identity/v1/statements_pb.js";
import { statementBytes } from "../src/fixtures/world.js";
import { Authority } from "../src/peer/authority.js";
import { connects, findServingCa, handshake } from "../src/peer/channel.js";
import { pem, pkcs8 } from "../src/peer/pem.js";
import { GatewayClient, type End, type Held, type NodeSession, type RenewOutcome } from "../src/peer/gatewayclient.js";
import { JoinClient } from "../src/peer/joinclient.js";
import { Plane, type NodeFiles } from "../src/peer/plane.js";
import { openJoinResponse, openRenewResponse, type Answer } from "../src/pki/answer.js";
import { openBundle } from "../src/pki/bundle.js";
import { equal } from "../src/pki/bytes.js";
import { makeRequest } from "../src/pki/csr.js";
import { newKey, type PrivateKey } from "../src/pki/keys.js";
import { readLeaf } from "../src/pki/leaf.js";
import { makeRenewPop } from "../src/pki/renewpop.js";
import { checkSvid } from "../src/pki/svid.js";

const JOURNAL = "00112233445566778899aabbccddeeff";
const folder = mkdtempSync(join(tmpdir(), "bcd-ts-gateway-"));
const open: GatewayClient[] = [];
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

async function connect(held: Held): Promise<GatewayClient> {
  const client = await GatewayClient.open(files, held);
  open.push(client);
  return client;
}

async function joined(): Promise<GatewayClient> {
  const key = newKey();
  const request = await joining.request(await plane.token(), {}, key);
  const outcome = await joining.call(request);
  assert.ok("reply" in outcome && outcome.reply.answer.case === "issued");
  const asked = { csr: request.csr, role: "node", joinSigningPins: joining.signingPins };
  const { chain } = openJoinResponse(statementBytes(outcome.reply.answer.value), asked);
  return connect({ chain, key });
}

const leafOf = (client: GatewayClient): Uint8Array => client.held.chain[0] ?? new Uint8Array();

async function welcomed(client: GatewayClient): Promise<NodeSession> {
  const session = client.session();
  session.hello(JOURNAL);
  const message = await session.next();
  assert.equal(message.case, "welcome");
  assert.ok(message.case === "welcome" && message.value.trustBundle !== undefined && message.value.serverTime !== undefined);
  openBundle(message.value.trustBundle, joining.signingPins, "py.example");
  return session;
}

function granted(client: GatewayClient, request: RenewRequest, outcome: RenewOutcome): Answer {
  if ("end" in outcome) assert.fail(`${status[outcome.end.code]}: ${outcome.end.text}`);
  assert.ok(outcome.reply.issued !== undefined && outcome.reply.serverTime !== undefined);
  const asked = { csr: request.csr, held: readLeaf(leafOf(client)), joinSigningPins: joining.signingPins };
  return openRenewResponse(toBinary(SignedStatementSchema, outcome.reply.issued), asked);
}

async function renewed(client: GatewayClient, next: PrivateKey): Promise<GatewayClient> {
  const request = client.request(next);
  const answer = granted(client, request, await client.renew(request));
  checkSvid(answer.leaf.der);
  return connect({ chain: answer.chain, key: next });
}

function refused(outcome: RenewOutcome): End {
  if ("reply" in outcome) assert.fail("granted");
  return outcome.end;
}

test("Hello, Welcome, renew_now when the operator says so, and half-close ends with OK", async () => {
  const node = await joined();
  const session = await welcomed(node);
  await plane.does(["nodes", "renew-now"], readLeaf(leafOf(node)).id.nodeId);
  assert.equal((await session.next()).case, "renewNow");
  session.halfClose();
  assert.equal((await session.ended()).code, status.OK);
});

test("a renewal passes the twelve checks; the old session ends with OK, and the old leaf is retired", async () => {
  const node = await joined();
  const old = await welcomed(node);
  const next = await renewed(node, newKey());
  await welcomed(next);
  assert.equal((await old.ended()).code, status.OK);
  const retired = refused(await node.renew(node.request()));
  assert.deepEqual([retired.code, retired.reason], [status.ABORTED, "CERTIFICATE_RETIRED"]);
});

test("the same request again gets the same statement, byte for byte", async () => {
  const node = await joined();
  const request = node.request();
  const [one, two] = [await node.renew(request), await node.renew(request)];
  assert.ok("reply" in one && "reply" in two && one.reply.issued !== undefined && two.reply.issued !== undefined);
  assert.ok(equal(statementBytes(one.reply.issued), statementBytes(two.reply.issued)));
});

test("the gateway's checks 1 to 3 and 6, each with its status, and none final", async () => {
  const node = await joined();
  const other = await joined();
  const key = newKey();
  const csr = makeRequest(key);
  const pop = (about: Uint8Array, leaf: Uint8Array, by: PrivateKey): Partial<RenewRequest> => ({ renewPop: makeRenewPop(about, leaf, by, Date.now()) });
  const cases: readonly (readonly [why: string, code: status, request: RenewRequest])[] = [
    ["1: no chain", status.INVALID_ARGUMENT, node.request(key, { chain: [] })],
    ["1: another node's leaf", status.INVALID_ARGUMENT, node.request(key, { chain: [...other.held.chain] })],
    ["2: no csr", status.INVALID_ARGUMENT, node.request(key, { csr: new Uint8Array() })],
    ["2: csr of another signer", status.INVALID_ARGUMENT, node.request(key, { csr: makeRequest(key, { signer: newKey() }) })],
    ["3: no proof", status.INVALID_ARGUMENT, node.request(key, { renewPop: undefined })],
    ["3: proof by the next key", status.INVALID_ARGUMENT, node.request(key, { csr, ...pop(csr, leafOf(node), key) })],
    ["3: proof about another csr", status.INVALID_ARGUMENT, node.request(key, { csr, ...pop(makeRequest(newKey()), leafOf(node), node.held.key) })],
    ["3: proof about another leaf", status.INVALID_ARGUMENT, node.request(key, { csr, ...pop(csr, leafOf(other), node.held.key) })],
    ["6: the key that is held", status.FAILED_PRECONDITION, node.request(node.held.key)],
    ["6: another node's key", status.FAILED_PRECONDITION, node.request(other.held.key)],
  ];
  for (const [why, code, request] of cases) {
    const end = refused(await node.renew(request));
    assert.equal(status[end.code], status[code], `${why}: ${end.text}`);
    assert.equal(end.reason, undefined, why);
  }
  granted(node, node.request(key, { csr }), await node.renew(node.request(key, { csr })));
});

test("an operator's revocation: the notice, then UNAUTHENTICATED with CERTIFICATE_REVOKED; and again at the next Hello", async () => {
  const node = await joined();
  const session = await welcomed(node);
  await plane.does(["nodes", "revoke"], readLeaf(leafOf(node)).id.nodeId, "--reason", "stolen");
  const notice = await session.next();
  assert.ok(notice.case === "revoked" && notice.value.revokedAt !== undefined);
  assert.match(notice.value.reason, /^operator: stolen/);
  const end = await session.ended();
  assert.deepEqual([end.code, end.reason], [status.UNAUTHENTICATED, "CERTIFICATE_REVOKED"]);
  const again = node.session();
  again.hello(JOURNAL);
  const second = await again.ended();
  assert.deepEqual([second.code, second.reason], [status.UNAUTHENTICATED, "CERTIFICATE_REVOKED"]);
});

test("a void leaf that is used means a clone: every certificate of the node is revoked", async () => {
  const node = await joined();
  const used = await renewed(node, newKey());
  const sibling = await renewed(node, newKey());
  const session = await welcomed(used);
  const stray = sibling.session();
  stray.hello(JOURNAL);
  const end = await stray.ended();
  assert.deepEqual([end.code, end.reason], [status.UNAUTHENTICATED, "CERTIFICATE_REVOKED"]);
  assert.match(end.text, /clone-suspected/);
  const notice = await session.next();
  assert.ok(notice.case === "revoked");
  assert.match(notice.value.reason, /clone-suspected/);
});

test("six distinct renewals an hour, and RESOURCE_EXHAUSTED with a pushback after them", async () => {
  const node = await joined();
  const first = node.request();
  granted(node, first, await node.renew(first));
  for (let n = 2; n <= 6; n += 1) {
    const request = node.request();
    granted(node, request, await node.renew(request));
  }
  const end = refused(await node.renew(node.request()));
  assert.equal(end.code, status.RESOURCE_EXHAUSTED);
  const pushbackMs = end.pushbackMs ?? 0;
  assert.ok(pushbackMs > 3_500_000 && pushbackMs <= 3_600_000, `${pushbackMs} ms`);
  granted(node, first, await node.renew(first));
});

test("nobody gets as far as a message without a leaf under the node root CA", async () => {
  const node = await joined();
  const port = Number(files.values.get("gateway")?.split(":").at(-1));
  const [leaf = ""] = node.held.chain.map((one) => pem("CERTIFICATE", one));
  const key = pem("PRIVATE KEY", pkcs8(node.held.key));
  const { chain } = await handshake(port, undefined, { cert: leaf, key });
  const ca = findServingCa(chain, [files.values.get("serving_ca_spki_pin") ?? ""]);
  const elsewhere = new Authority();
  const stranger = newKey();
  const foreign = elsewhere.issue(stranger.spki, { trustDomain: "py.example", siteId: "lab", nodeId: "n-1" }, "node");
  const cert = pem("CERTIFICATE", foreign) + pem("CERTIFICATE", elsewhere.caDer);
  const [good, none, other] = await Promise.all([
    connects(port, ca, { cert: node.held.chain.map((one) => pem("CERTIFICATE", one)).join(""), key }),
    connects(port, ca),
    connects(port, ca, { cert, key: pem("PRIVATE KEY", pkcs8(stranger)) }),
  ]);
  assert.deepEqual({ good, none, other }, { good: true, none: false, other: false });
});

test("a Hello with a journal id that is none is out of form, which is no verdict", async () => {
  const node = await joined();
  for (const journal of ["", "00", "G".repeat(32), "0A".repeat(16), `${JOURNAL}00`]) {
    const session = node.session();
    session.hello(journal);
    const end = await session.ended();
    assert.deepEqual([end.code, end.reason], [status.INVALID_ARGUMENT, undefined], journal);
  }
  await welcomed(node);
});

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { Authority } from "../src/peer/authority.js";
import { run } from "../src/peer/command.js";
import { readIdentity } from "../src/peer/identity.js";
import { issued, JoinServer, pending, pushback, refusal, type Answer } from "../src/peer/joinserver.js";
import { writeNodeFolder, type NodeFolder } from "../src/peer/nodefolder.js";
import { Relay } from "../src/peer/relay.js";
import { Status } from "../src/peer/status.js";
import { inTemp } from "../src/peer/temp.js";
import { token } from "../src/fixtures/world.js";
import { equal } from "../src/pki/bytes.js";
import { isRole, type Role } from "../src/pki/names.js";
import { readJoinRequest } from "../src/pki/rows.js";
import { unseal } from "../src/pki/seal.js";
import type { JoinRequest } from "../src/pb/bc/identity/v1/join_pb.js";

const authority = new Authority();

interface Asked {
  readonly spki: Uint8Array;
  readonly nodeId: string;
  readonly role: Role;
}

/** Everything the page lets a control plane check of a request, the token included. */
async function check(request: JoinRequest): Promise<Asked> {
  const { spki } = readJoinRequest(request);
  assert.equal(request.sealedToken?.kid, authority.encryption.kid);
  assert.equal(await unseal(request.sealedToken.sealed, request.csr, authority.encryption), token);
  assert.ok(isRole(request.role));
  return { spki, nodeId: request.wantedNodeId || "n-ts", role: request.role };
}

async function issue(request: JoinRequest, change: Partial<Asked> = {}): Promise<ReturnType<typeof issued>> {
  const asked = { ...(await check(request)), ...change };
  const leaf = authority.issue(asked.spki, { trustDomain: authority.trustDomain, siteId: "lab", nodeId: asked.nodeId }, asked.role);
  return issued(authority.joinResponse(request.csr, leaf));
}

interface Joined {
  readonly server: JoinServer;
  readonly node: NodeFolder;
  readonly join: (...args: string[]) => ReturnType<typeof run>;
  readonly suites: readonly string[];
}

async function withServer(answer: Answer, use: (joined: Joined) => Promise<void>, servingCa = false): Promise<void> {
  const server = await JoinServer.start(authority, answer);
  const relay = await Relay.start(server.port);
  try {
    await inTemp(async (folder) => {
      const node = writeNodeFolder(folder, authority, { join: relay.port }, servingCa);
      const join = (...args: string[]): ReturnType<typeof run> => run("bcd-fakehw", ["join", "--config", node.config, ...args], `${token}\n`);
      await use({ server, node, join, suites: relay.suites });
    });
  } finally {
    await relay.stop();
    server.stop();
  }
}

test("bcd joins here, over TLS with a SHA-384 suite, and stores what the page says", async () => {
  await withServer((request) => issue(request), async ({ server, node, join, suites }) => {
    const ended = await join();
    assert.equal(ended.status, 0, ended.stderr);
    assert.match(ended.stdout, /joined as n-ts/);
    const { leaf, trustVersion } = readIdentity(node.data, [authority.signing.pin]);
    assert.equal(leaf.id.nodeId, "n-ts");
    assert.equal(trustVersion, 1n);
    assert.equal(server.requests.length, 1);
    assert.equal(server.requests[0]?.attestor, "join-token");
    assert.ok(suites.length > 0 && suites.every((suite) => suite === "TLS_AES_256_GCM_SHA384"), suites.join());
  });
});

test("bcd joins as the node it is to be, and with serving-ca.pem beside its configuration", async () => {
  await withServer((request) => issue(request), async ({ server, node, join }) => {
    const ended = await join("--node-id", "n-7", "--role", "ramdisk");
    assert.equal(ended.status, 0, ended.stderr);
    assert.equal(server.requests[0]?.attestor, "provisioned");
    const { leaf } = readIdentity(node.data, [authority.signing.pin]);
    assert.equal(leaf.id.nodeId, "n-7");
    assert.equal(leaf.role, "ramdisk");
  }, true);
});

test("a refusal is final and told with its id, and nothing is stored", async () => {
  const refused = refusal();
  await withServer(() => Promise.reject(refused), async ({ server, node, join }) => {
    const ended = await join();
    assert.notEqual(ended.status, 0);
    assert.ok(`${ended.stdout}${ended.stderr}`.includes(refused.refusalId), ended.stderr);
    assert.equal(server.requests.length, 1);
    assert.ok(!existsSync(`${node.data}/identity.json`));
  });
});

test("after an approval, a pushback and a proxy's refusal the same request comes again, byte for byte", async () => {
  const answers: Answer[] = [
    () => Promise.reject(pushback(10)),
    () => Promise.reject(new Status(status.PERMISSION_DENIED, "Join refused")),
    () => Promise.resolve(pending("p-42", 0)),
    (request) => issue(request),
  ];
  await withServer((request) => (answers.shift() ?? issue)(request), async ({ server, join }) => {
    const ended = await join();
    assert.equal(ended.status, 0, ended.stderr);
    const [first, ...others] = server.requests;
    assert.ok(first !== undefined && others.length === 3);
    for (const other of others) {
      assert.ok(equal(first.csr, other.csr));
      assert.ok(equal(first.sealedToken?.sealed ?? new Uint8Array(), other.sealedToken?.sealed ?? new Uint8Array(1)));
    }
    assert.deepEqual(server.requests.map((one) => one.pendingId), ["", "", "", "p-42"]);
  });
});

const wrong: readonly (readonly [check: number, what: string, answer: Answer])[] = [
  [4, "a trust bundle instead of a join response", () => Promise.resolve(issued(authority.bundle()))],
  [6, "an answer to another request", async (request) => {
    const reply = await issue(request);
    const answer = authority.joinResponse(Uint8Array.from([...request.csr, 0]), authority.issue((await check(request)).spki, { trustDomain: "ts.example", siteId: "lab", nodeId: "n" }, "node"));
    return { ...reply, answer: { case: "issued", value: answer } };
  }],
  [8, "a leaf for another key", (request) => issue(request, { spki: authority.ca.spki })],
  [10, "a leaf of another role", (request) => issue(request, { role: "site" })],
];

for (const [number, what, answer] of wrong) {
  test(`bcd stores nothing of ${what}, and names check ${number}`, async () => {
    await withServer(answer, async ({ node, join }) => {
      const ended = await join();
      assert.notEqual(ended.status, 0);
      assert.match(`${ended.stdout}${ended.stderr}`, new RegExp(`check ${number}\\b`));
      assert.ok(!existsSync(`${node.data}/identity.json`));
    });
  });
}

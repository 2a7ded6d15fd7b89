import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { SignedStatementSchema, TrustBundleSchema } from "../pb/bc/identity/v1/statements_pb.js";
import { equal, fromBase64, fromUtf8 } from "../pki/bytes.js";
import { readChain } from "../pki/chain.js";
import { parseStrict } from "../pki/json.js";
import type { Leaf } from "../pki/leaf.js";
import { require } from "../pki/refused.js";
import { verifyStatement } from "../pki/statement.js";
import { readMessage } from "../pki/wire.js";

export interface Identity {
  readonly leaf: Leaf;
  readonly chain: readonly Uint8Array[];
  readonly trustVersion: bigint;
  readonly serverTime: number;
}

function text(file: ReadonlyMap<string, unknown>, name: string): string {
  const value = file.get(name);
  require(typeof value === "string", "identity.json", `${name} is no text`);
  return value;
}

function list(file: ReadonlyMap<string, unknown>, name: string): Uint8Array[] {
  const value = file.get(name);
  require(Array.isArray(value), "identity.json", `${name} is no array`);
  return value.map((one: unknown) => {
    require(typeof one === "string", "identity.json", `${name} holds more than texts`);
    return fromBase64(one);
  });
}

/** identity.json as the page's table has it, held against its own certificate and against node.key. */
export function readIdentity(folder: string, pins: readonly string[]): Identity {
  const file = parseStrict(fromUtf8(readFileSync(join(folder, "identity.json"))));
  const check = "identity.json";
  const chain = list(file, "chain");
  const { leaf } = readChain(chain, undefined);
  const named = { nodeId: leaf.id.nodeId, siteId: leaf.id.siteId, trustDomain: leaf.id.trustDomain, role: leaf.role };
  for (const [name, value] of Object.entries(named)) require(text(file, name) === value, check, `${name} is not the leaf's`);
  require(Date.parse(text(file, "notAfter")) === leaf.notAfter, check, "notAfter is not the leaf's");
  const payload = fromBase64(text(file, "trustBundle"));
  const statement = readMessage(SignedStatementSchema, fromBase64(text(file, "signedTrustBundle")));
  require(equal(verifyStatement(statement, "trust-bundle", pins).payload, payload), check, "trustBundle is not the signed one's payload");
  const bundle = readMessage(TrustBundleSchema, payload);
  require(file.get("trustVersion") === Number(bundle.version), check, "trustVersion is not the bundle's");
  const roots = file.has("trustRoots") ? list(file, "trustRoots") : [];
  require(roots.length === bundle.commandRoots.length && roots.every((root, n) => equal(root, bundle.commandRoots[n] ?? root)), check, "trustRoots");
  const key = createPublicKey(createPrivateKey(readFileSync(join(folder, "node.key")))).export({ format: "der", type: "spki" });
  require(equal(new Uint8Array(key), leaf.spki), "node.key", "not the leaf's key");
  return { leaf, chain, trustVersion: bundle.version, serverTime: Date.parse(text(file, "serverTime")) };
}

import { JoinResponseSchema, RenewResponseSchema, type TrustBundle } from "../pb/bc/identity/v1/statements_pb.js";
import { equal, sha256 } from "./bytes.js";
import { openBundle } from "./bundle.js";
import { readChain } from "./chain.js";
import { readRequest } from "./csr.js";
import type { Leaf } from "./leaf.js";
import { readStatement, verifyStatement, type StatementChecks } from "./statement.js";
import { require, under } from "./refused.js";
import { readTimestamp } from "./time.js";
import { readMessage } from "./wire.js";

/** Numbers 1 to 4 are the same for a join and a renew response. */
const CHECKS: StatementChecks = { form: 1, pin: 2, kid: 3, signature: 4 };

export interface Answer {
  readonly leaf: Leaf;
  readonly chain: readonly Uint8Array[];
  readonly bundle: TrustBundle;
  readonly serverTime: number;
}

export interface JoinQuestion {
  readonly csr: Uint8Array;
  readonly role: string;
  readonly wantedNodeId?: string;
  readonly joinSigningPins: readonly string[];
}

/** "Checking a join response", 1 to 11 in this order. */
export function openJoinResponse(bytes: Uint8Array, asked: JoinQuestion): Answer {
  const statement = readStatement(bytes, 1);
  const { payload } = verifyStatement(statement, "join-response", asked.joinSigningPins, CHECKS);
  const response = under(5, () => readMessage(JoinResponseSchema, payload));
  const serverTime = readTimestamp(response.serverTime, 5, "server_time");
  require(equal(response.csrSha256, sha256(asked.csr)), 6, "it answers another request");
  const { leaf } = under(7, () => readChain(response.chain, serverTime));
  require(equal(leaf.spki, readRequest(asked.csr).spki), 8, "the leaf is for another key");
  const wanted = asked.wantedNodeId ?? "";
  require(wanted === "" || leaf.id.nodeId === wanted, 9, "the leaf is for another node");
  require(leaf.role === asked.role, 10, "the leaf has another role");
  const bundle = under(11, () => openBundle(response.trustBundle, asked.joinSigningPins, leaf.id.trustDomain));
  return { leaf, chain: response.chain, bundle, serverTime };
}

export interface RenewQuestion {
  readonly csr: Uint8Array;
  readonly held: Leaf;
  readonly joinSigningPins: readonly string[];
}

/** "Checking a renew response", 1 to 12 in this order. */
export function openRenewResponse(bytes: Uint8Array, asked: RenewQuestion): Answer {
  const statement = readStatement(bytes, 1);
  const { payload } = verifyStatement(statement, "renew-response", asked.joinSigningPins, CHECKS);
  const response = under(5, () => readMessage(RenewResponseSchema, payload));
  const serverTime = readTimestamp(response.serverTime, 5, "server_time");
  require(equal(response.csrSha256, sha256(asked.csr)), 6, "it answers another request");
  const { leaf } = under(7, () => readChain(response.chain, serverTime));
  require(equal(leaf.spki, readRequest(asked.csr).spki), 8, "the leaf is for another key");
  const { held } = asked;
  require(
    leaf.id.trustDomain === held.id.trustDomain &&
      leaf.id.siteId === held.id.siteId &&
      leaf.id.nodeId === held.id.nodeId &&
      leaf.role === held.role,
    9,
    "the leaf has another name or role",
  );
  require(leaf.notAfter > held.notAfter, 10, "the leaf ends no later than the held one");
  require(leaf.attestationKey === held.attestationKey, 11, "the leaf names another attestation key");
  const bundle = under(12, () => openBundle(response.trustBundle, asked.joinSigningPins, leaf.id.trustDomain));
  return { leaf, chain: response.chain, bundle, serverTime };
}

import type { Claims, JoinChallenge, JoinReply, JoinRequest } from "../pb/bc/identity/v1/join_pb.js";
import { toBinary } from "@bufbuild/protobuf";
import type { RenewRequest } from "../pb/bc/identity/v1/gateway_pb.js";
import { SignedStatementSchema } from "../pb/bc/identity/v1/statements_pb.js";
import { equal } from "./bytes.js";
import { readRequest } from "./csr.js";
import type { PublicKey } from "./keys.js";
import type { Leaf } from "./leaf.js";
import { isId, isRole } from "./names.js";
import { Refused, require, under } from "./refused.js";
import { openRenewPop } from "./renewpop.js";
import { readTimestamp } from "./time.js";
import { checkAnswerBounds } from "../tpm/answer.js";
import { readEvidence } from "../tpm/evidence.js";

const MAX_TEXT = 256;
const MAX_LIST = 64;
const MAX_SEALED = 4177;
const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;
const GPU = /^gpu-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The page says "printable" and not of which set; here: no control, format, surrogate, private or unassigned character,
 * and no separator but the space. HOLES.md has it. */
function printable(text: string): boolean {
  return !/[\p{C}\p{Zl}\p{Zp}]/u.test(text) && !/(?! )\p{Zs}/u.test(text);
}

/** Characters as code points, not as UTF-16 units. */
const fits = (text: string, most: number): boolean => [...text].length <= most && printable(text);

function sortedWithoutRepetition(list: readonly string[]): boolean {
  return list.every((one, n) => n === 0 || (list[n - 1] ?? "") < one);
}

function checkClaims(claims: Claims): void {
  const texts = [claims.productUuid, claims.productSerial, claims.boardSerial, claims.chassisSerial, claims.hostname, claims.bootId];
  require(texts.every((text) => fits(text, MAX_TEXT)), "claims", "more than 256 printable characters");
  for (const [list, form] of [[claims.macs, MAC], [claims.gpuUuids, GPU]] as const) {
    require(list.length <= MAX_LIST, "claims", "more than 64 in a list");
    require(list.every((one) => form.test(one)), "claims", "not in the form of a MAC or a GPU UUID");
    require(sortedWithoutRepetition(list), "claims", "not sorted without repetition");
  }
}

/** The table JoinRequest, row by row: what a control plane may hold a request against before it opens the token. */
export function readJoinRequest(request: JoinRequest): PublicKey {
  const { attestor } = request;
  require(["join-token", "provisioned", "tpm"].includes(attestor), "attestor", "no attestor of this version");
  const key = under("csr", () => readRequest(request.csr));
  if (attestor === "tpm") checkTpmRows(request);
  else checkTokenRows(request);
  require(isRole(request.role), "role", "no role");
  if (request.claims !== undefined) checkClaims(request.claims);
  require(fits(request.daemonVersion, MAX_TEXT), "daemon_version", "more than 256 printable characters");
  require(fits(request.pendingId, MAX_LIST), "pending_id", "more than 64 printable characters");
  return key;
}

/** A TPM says which machine it is: no token, no node id, but evidence, and an answer from round 2 on. */
function checkTpmRows(request: JoinRequest): void {
  require(request.sealedToken === undefined, "sealed_token", "beside attestor tpm");
  require(request.wantedNodeId === "", "wanted_node_id", "beside attestor tpm");
  under("tpm_evidence", () => readEvidence(request.tpmEvidence));
  if (request.challengeAnswer !== undefined) checkAnswerBounds(request.challengeAnswer);
}

function checkTokenRows(request: JoinRequest): void {
  require(request.sealedToken !== undefined, "sealed_token", "absent");
  require([...request.sealedToken.kid].length <= 64, "sealed_token", "kid of more than 64 characters");
  require(request.sealedToken.sealed.length <= MAX_SEALED, "sealed_token", "sealed of more than 4177 bytes");
  const wanted = request.wantedNodeId;
  require(wanted === "" || isId(wanted), "wanted_node_id", "no node id");
  require((wanted !== "") === (request.attestor === "provisioned"), "attestor", "provisioned when wanted_node_id is set, and only then");
}

export type ReplyAnswer = { readonly answer: "issued" } | { readonly answer: "challenge"; readonly id: string } | { readonly answer: "pending"; readonly id: string; readonly waitS: number };

/** A challenge that is none counts as no answer. */
function readChallenge({ id, tpm, notAfter }: JoinChallenge): ReplyAnswer {
  require(tpm !== undefined, "JoinReply", "a challenge without tpm");
  readTimestamp(notAfter, "JoinReply", "not_after");
  return { answer: "challenge", id };
}

/** Which of the three a reply is; `waitS` is the wait that the node really makes. */
export function readJoinReply(reply: JoinReply): ReplyAnswer {
  switch (reply.answer.case) {
    case "issued":
      return { answer: "issued" };
    case "pending": {
      const { id, retryAfterS } = reply.answer.value;
      return { answer: "pending", id, waitS: Math.min(Math.max(retryAfterS, 1), 3600) };
    }
    case "challenge":
      return readChallenge(reply.answer.value);
    case undefined:
      throw new Refused("JoinReply", "none of the three: no answer");
  }
}

/** What the gateway checks of a RenewRequest before it looks at the certificate's state: its numbers 1 to 3. */
export function readRenewRequest(request: RenewRequest, connectionLeaf: Leaf): PublicKey {
  const [first] = request.chain;
  require(first !== undefined && equal(first, connectionLeaf.der), 1, "chain does not begin with the leaf of the connection");
  const key = under(2, () => readRequest(request.csr));
  const pop = request.renewPop;
  require(pop !== undefined, 3, "no renew_pop");
  under(3, () => openRenewPop(toBinary(SignedStatementSchema, pop), request.csr, connectionLeaf));
  return key;
}

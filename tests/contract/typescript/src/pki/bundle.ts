import { TrustBundleSchema, type SignedStatement, type TrustBundle } from "../pb/bc/identity/v1/statements_pb.js";
import { readPublicKey } from "./keys.js";
import { isTrustDomain } from "./names.js";
import { require, under, type Check } from "./refused.js";
import { verifyStatement } from "./statement.js";
import { readTimestamp } from "./time.js";
import { readMessage } from "./wire.js";

const MAX_ROOTS = 32;

/** A bundle of `trustDomain`, or of any when the caller has none to hold it against. */
export function readBundle(payload: Uint8Array, trustDomain: string | undefined): TrustBundle {
  const check: Check = "bundle";
  const bundle = under(check, () => readMessage(TrustBundleSchema, payload));
  require(isTrustDomain(bundle.trustDomain), check, "no trust domain");
  require(trustDomain === undefined || bundle.trustDomain === trustDomain, check, "of another trust domain");
  require(bundle.commandRoots.length <= MAX_ROOTS, check, "more than 32 command roots");
  for (const root of bundle.commandRoots) under(check, () => readPublicKey(root));
  for (const approver of bundle.approvers) {
    const key = under(check, () => readPublicKey(approver.spki));
    require(approver.kid === key.kid, check, "an approver's kid is not the thumbprint of its key");
  }
  readTimestamp(bundle.issuedAt, check, "issued_at");
  return bundle;
}

export function openBundle(statement: SignedStatement | undefined, pins: readonly string[], trustDomain: string | undefined): TrustBundle {
  require(statement !== undefined, "bundle", "no trust bundle");
  return readBundle(verifyStatement(statement, "trust-bundle", pins).payload, trustDomain);
}

import { status } from "@grpc/grpc-js";
import type { SignedStatement } from "../pb/bc/identity/v1/statements_pb.js";
import type { RenewRequest } from "../pb/bc/identity/v1/gateway_pb.js";
import { validity } from "../pki/make.js";
import type { Leaf } from "../pki/leaf.js";
import { Refused } from "../pki/refused.js";
import { readRenewRequest } from "../pki/rows.js";
import type { Authority } from "./authority.js";
import { Status } from "./status.js";

/** The gateway's checks 1 to 3 of a RenewRequest. */
export function checkRenewRequest(request: RenewRequest, leaf: Leaf): Uint8Array {
  try {
    return readRenewRequest(request, leaf).spki;
  } catch (error) {
    if (error instanceof Refused) throw new Status(status.INVALID_ARGUMENT, error.message);
    throw error;
  }
}

/** Two certificates in one second would end together: a second is taken from the margin before notBefore. */
function laterThan(held: Leaf, lifetimeMs: number): { notBefore: Date; notAfter: Date } {
  const usual = validity(new Date(), lifetimeMs);
  if (usual.notAfter.getTime() > held.notAfter) return usual;
  const notAfter = new Date(held.notAfter + 1000);
  return { notBefore: new Date(notAfter.getTime() - lifetimeMs), notAfter };
}

/** A renewal as a control plane grants it. */
export function renew(authority: Authority, request: RenewRequest, leaf: Leaf): SignedStatement {
  const spki = checkRenewRequest(request, leaf);
  return authority.renewResponse(request.csr, authority.issue(spki, leaf.id, leaf.role, laterThan(leaf, authority.lifetimeMs)));
}

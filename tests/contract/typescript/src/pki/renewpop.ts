import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { RenewPopSchema, type SignedStatement } from "../pb/bc/identity/v1/statements_pb.js";
import { equal, sha256 } from "./bytes.js";
import type { PrivateKey } from "./keys.js";
import type { Leaf } from "./leaf.js";
import { require, under } from "./refused.js";
import { readStatement, signMessage, verifyStatement } from "./statement.js";
import { readMessage } from "./wire.js";

export function makeRenewPop(csr: Uint8Array, leaf: Uint8Array, key: PrivateKey, clientTime: number): SignedStatement {
  const pop = create(RenewPopSchema, {
    csrSha256: sha256(csr),
    leafSha256: sha256(leaf),
    clientTime: timestampFromMs(clientTime),
  });
  return signMessage("renew-pop", RenewPopSchema, pop, key);
}

/** What a control plane checks: signed by the held leaf's key, over this request and that leaf. client_time decides
 * nothing, so its absence is no reason to refuse either. */
export function openRenewPop(bytes: Uint8Array, csr: Uint8Array, held: Leaf): void {
  const { payload } = verifyStatement(readStatement(bytes, "statement"), "renew-pop", [held.key.pin]);
  const pop = under("renew-pop", () => readMessage(RenewPopSchema, payload));
  require(equal(pop.csrSha256, sha256(csr)), "renew-pop", "csr_sha256 is of another request");
  require(equal(pop.leafSha256, sha256(held.der)), "renew-pop", "leaf_sha256 is of another leaf");
}

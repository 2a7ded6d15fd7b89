import type { Attestation } from "../pb/bc/identity/v1/attestation_pb.js";
import { equal, sha256 } from "../pki/bytes.js";
import { verifyP1363, type PublicKey } from "../pki/keys.js";
import { require, under } from "../pki/refused.js";
import type { Area } from "./area.js";
import { readCertification } from "./attest.js";
import { ATTEST, GENERATED } from "./constants.js";
import { isNodeKey } from "./templates.js";

export const signedBy = (key: Area, one: Attestation | undefined): one is Attestation =>
  one !== undefined && key.key !== undefined && verifyP1363(key.key, one.attest, one.signature);

/** Checks 17 to 24: `attestationKey` certified `nodeKey`, which is the key of `csr`. */
export function checkCertification(told: Attestation | undefined, attestationKey: Area, nodeKey: Area, csr: Uint8Array, csrKey: PublicKey): void {
  require(signedBy(attestationKey, told), 17, "the certification is not signed by the attestation key");
  const certification = under(18, () => readCertification(told.attest));
  require(certification.magic === GENERATED, 19, "another magic");
  require(certification.type === ATTEST.certify, 20, "another type");
  require(equal(certification.extraData, sha256(csr)), 21, "about another request");
  require(equal(certification.name, nodeKey.name), 22, "another key is certified");
  require(nodeKey.key !== undefined && equal(nodeKey.key.spki, csrKey.spki), 23, "not the request's key");
  require(isNodeKey(nodeKey), 24, "no node key's template");
}

import type { KeyAttestation } from "../pb/bc/identity/v1/attestation_pb.js";
import { readRequest } from "../pki/csr.js";
import type { Leaf } from "../pki/leaf.js";
import { require, under } from "../pki/refused.js";
import { attestationKeyText } from "./answer.js";
import { checkCertification } from "./certify.js";
import { boundedArea } from "./evidence.js";

/** The gateway's check 7 of Renew; the rows inside are those of the page, or 17 to 24. */
export function checkKeyAttestation(told: KeyAttestation | undefined, csr: Uint8Array, held: Leaf): void {
  if (held.attestationKey === undefined) return;
  under(7, () => {
    require(told !== undefined, "key_attestation", "absent");
    const { akPublic, keyPublic, certification } = told;
    require((certification?.attest.length ?? 0) <= 1024, "key_attestation", "an attest of more than 1024 bytes");
    const [attestationKey, nodeKey] = [akPublic, keyPublic].map((bytes) => under("key_attestation", () => boundedArea(bytes)));
    require(attestationKey !== undefined && nodeKey !== undefined, "key_attestation", "no areas");
    require(attestationKeyText(attestationKey) === held.attestationKey, "ak_public", "not the key that the leaf names");
    checkCertification(certification, attestationKey, nodeKey, csr, readRequest(csr));
  });
}

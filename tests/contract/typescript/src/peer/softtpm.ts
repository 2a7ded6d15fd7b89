import { create } from "@bufbuild/protobuf";
import {
  AttestationSchema, EndorsementKeySchema, KeyAttestationSchema, TpmEvidenceSchema, type Attestation, type KeyAttestation, type TpmEvidence,
} from "../pb/bc/identity/v1/attestation_pb.js";
import { ChallengeAnswerSchema, type ChallengeAnswer, type JoinChallenge } from "../pb/bc/identity/v1/join_pb.js";
import { concat, equal, fromBase64url, sha256, utf8 } from "../pki/bytes.js";
import { coordinates, newKey, signP1363, type PrivateKey, type PublicKey } from "../pki/keys.js";
import { calledBy, readArea, writeArea, type Area, type EccParts } from "../tpm/area.js";
import { head, writeCertification, writeQuote } from "../tpm/attest.js";
import { ALG } from "../tpm/constants.js";
import { openCredential, type Opener } from "../tpm/credential.js";
import { namedRsaKey } from "../tpm/rsa.js";
import { ATTESTATION_KEY, L1, L2, NODE_KEY } from "../tpm/templates.js";

const PCRS: readonly Uint8Array[] = Array.from({ length: 24 }, (_, n) => sha256(utf8(`PCR ${n}`)));

/** The area that a TPM would give a key on P-256. */
export function eccArea(key: PublicKey, template: Omit<EccParts, "x" | "y">): Area {
  const { x, y } = coordinates(key.spki);
  return readArea(writeArea({ ...template, x: fromBase64url(x), y: fromBase64url(y) }));
}

/** What a node says for its TPM, with keys that are in none: nothing on the wire tells the two apart. */
export class SoftTpm {
  readonly attestationKey = newKey();
  readonly area = eccArea(this.attestationKey, ATTESTATION_KEY);
  private readonly endorsement: readonly { readonly area: Area; readonly opener: Opener }[];

  constructor(name: string) {
    const [rsa, ecc] = [namedRsaKey(name), newKey()];
    this.endorsement = [
      { area: readArea(writeArea({ ...L1, modulus: rsa.modulus })), opener: rsa },
      { area: eccArea(ecc, L2), opener: ecc },
    ];
  }

  /** What the operator allows: the RSA key, then the one on P-256. */
  get called(): string[] {
    return this.endorsement.map((one) => calledBy(one.area));
  }

  evidence(nodeKey: PrivateKey | undefined): TpmEvidence {
    return create(TpmEvidenceSchema, {
      endorsementKeys: this.endorsement.map((one) => create(EndorsementKeySchema, { publicArea: one.area.bytes })),
      pcrBanks: [ALG.sha1, ALG.sha256],
      akPublic: this.area.bytes,
      nodeKeyPublic: nodeKey === undefined ? new Uint8Array() : eccArea(nodeKey, NODE_KEY).bytes,
    });
  }

  answer({ id, tpm }: JoinChallenge, csr: Uint8Array, nodeKey: PrivateKey | undefined): ChallengeAnswer {
    const asked = this.endorsement.find((one) => tpm !== undefined && equal(one.area.name, tpm.ekName));
    if (tpm === undefined || asked === undefined) throw new Error("a challenge for another TPM");
    const pcrValues = PCRS.filter((_, n) => (((tpm.pcrSelection[n >> 3] ?? 0) >> (n & 7)) & 1) === 1);
    const quote = writeQuote({
      ...head("quote", this.area.name, tpm.nonce), selections: [{ bank: tpm.pcrBank, bits: tpm.pcrSelection }], digest: sha256(concat(...pcrValues)),
    });
    const answer = create(ChallengeAnswerSchema, { id, secret: openCredential(asked.opener, this.area.name, tpm), quote: this.signed(quote), pcrValues });
    if (nodeKey !== undefined) answer.certification = this.certified(eccArea(nodeKey, NODE_KEY), csr);
    return answer;
  }

  keyAttestation(key: PrivateKey, csr: Uint8Array): KeyAttestation {
    const area = eccArea(key, NODE_KEY);
    return create(KeyAttestationSchema, { akPublic: this.area.bytes, keyPublic: area.bytes, certification: this.certified(area, csr) });
  }

  private certified(area: Area, csr: Uint8Array): Attestation {
    return this.signed(writeCertification({ ...head("certify", this.area.name, sha256(csr)), name: area.name, qualifiedName: area.name }));
  }

  private signed(attest: Uint8Array): Attestation {
    return create(AttestationSchema, { attest, signature: signP1363(this.attestationKey, attest) });
  }
}

import type { TpmEvidence } from "../pb/bc/identity/v1/attestation_pb.js";
import { Refused, require, under } from "../pki/refused.js";
import { hex } from "../pki/bytes.js";
import { calledBy, readArea, spkiOfArea, type Area } from "./area.js";
import { ALG } from "./constants.js";
import { isAttestationKey, isEndorsementKey } from "./templates.js";

const MAX_AREA = 1024;
const MAX_CERTIFICATE = 16384;
const MAX_CHAIN = 65536;

/** A node key is undefined where the evidence has none. */
export interface Evidence {
  readonly endorsementKeys: readonly Area[];
  readonly attestationKey: Area;
  readonly nodeKey: Area | undefined;
  readonly banks: readonly number[];
}

export interface Judged extends Evidence {
  /** The endorsement key that may join. */
  readonly endorsementKey: Area;
}

/** What an operator said of endorsement keys, `sha256:…` each. */
export interface Lists {
  readonly allowed: readonly string[];
  readonly denied: readonly string[];
}

/** A TPMT_PUBLIC within its bound, and all of it. */
export const boundedArea = (bytes: Uint8Array): Area => {
  if (bytes.length > MAX_AREA) throw new Error("an area of more than 1024 bytes");
  return readArea(bytes);
};

/** An endorsement key's has a key in it that has a name outside. */
function keyedArea(bytes: Uint8Array): Area {
  const area = boundedArea(bytes);
  spkiOfArea(area);
  return area;
}

/** The table TpmEvidence; check 1 when there is none. */
export function readEvidence(evidence: TpmEvidence | undefined): Evidence {
  return under(1, () => {
    require(evidence !== undefined, 1, "no evidence");
    const { endorsementKeys, ekChain, pcrBanks, akPublic, nodeKeyPublic } = evidence;
    require(endorsementKeys.length <= 8, 1, "more than 8 endorsement keys");
    require(new Set(endorsementKeys.map((one) => hex(one.publicArea))).size === endorsementKeys.length, 1, "an endorsement key twice");
    require(endorsementKeys.every((one) => one.certificate.length <= MAX_CERTIFICATE), 1, "a certificate of more than 16384 bytes");
    require(ekChain.length <= 64, 1, "more than 64 parts of ek_chain");
    require(ekChain.reduce((sum, one) => sum + one.length, 0) <= MAX_CHAIN, 1, "an ek_chain of more than 65536 bytes");
    require(pcrBanks.length <= 16, 1, "more than 16 banks");
    return {
      endorsementKeys: endorsementKeys.map((one) => keyedArea(one.publicArea)),
      attestationKey: boundedArea(akPublic),
      nodeKey: nodeKeyPublic.length === 0 ? undefined : boundedArea(nodeKeyPublic),
      banks: pcrBanks,
    };
  });
}

/** Of check 2 the rows that need no certificate: denied, allowed, none of these. */
function admitted(keys: readonly Area[], lists: Lists): Area {
  const names = keys.map(calledBy);
  require(!names.some((name) => lists.denied.includes(name)), 2, "an endorsement key is denied");
  const found = keys.find((_, n) => lists.allowed.includes(names[n] ?? ""));
  if (found === undefined) throw new Refused(2, "nobody spoke of an endorsement key");
  return found;
}

/** The first that is there is asked for. */
const BANKS: readonly number[] = [ALG.sha256, ALG.sha384, ALG.sha512];

/** Checks 1 to 4 of "Checking a machine's TPM", and the bank that a challenge is about. */
export function judgeEvidence(told: TpmEvidence | undefined, lists: Lists): Judged {
  const evidence = readEvidence(told);
  const endorsementKey = admitted(evidence.endorsementKeys, lists);
  require(isEndorsementKey(endorsementKey), 3, "the endorsement key has neither template");
  require(isAttestationKey(evidence.attestationKey), 4, "no attestation key");
  require(BANKS.some((bank) => evidence.banks.includes(bank)), "pcr_banks", "no bank that is asked for");
  return { ...evidence, endorsementKey };
}

import { fromHex } from "../pki/bytes.js";
import type { Area, EccParts, RsaParts } from "./area.js";
import { ALG, ATTRIBUTE, P256 } from "./constants.js";

const { fixedTpm, fixedParent, sensitiveDataOrigin, userWithAuth, adminWithPolicy, noDa, restricted, decrypt, sign } = ATTRIBUTE;

/** TPM2_PolicySecret(TPM_RH_ENDORSEMENT), TCG EK Credential Profile, PolicyA of SHA-256. */
const POLICY_A = fromHex("837197674484b3f81a90cc8d46a5d724fd52d76e06520b64f2a1da1b331469aa");

const ENDORSEMENT = {
  nameAlgorithm: ALG.sha256,
  attributes: fixedTpm | fixedParent | sensitiveDataOrigin | adminWithPolicy | restricted | decrypt,
  policy: POLICY_A,
  symmetric: { algorithm: ALG.aes, keyBits: 128, mode: ALG.cfb },
  scheme: undefined,
} as const;

export const L1: Omit<RsaParts, "modulus"> = { type: "rsa", ...ENDORSEMENT, keyBits: 2048, exponent: 0 };
export const L2: Omit<EccParts, "x" | "y"> = { type: "ecc", ...ENDORSEMENT, curve: P256, kdf: undefined };

const SIGNING = { type: "ecc", nameAlgorithm: ALG.sha256, policy: new Uint8Array(), symmetric: undefined, curve: P256, kdf: undefined } as const;
const MADE_HERE = fixedTpm | fixedParent | sensitiveDataOrigin;
const ECDSA_SHA256 = { algorithm: ALG.ecdsa, hash: ALG.sha256 } as const;

export const ATTESTATION_KEY: Omit<EccParts, "x" | "y"> = {
  ...SIGNING, attributes: MADE_HERE | userWithAuth | noDa | restricted | sign, scheme: ECDSA_SHA256,
};
export const NODE_KEY: Omit<EccParts, "x" | "y"> = {
  ...SIGNING, attributes: MADE_HERE | userWithAuth | noDa | sign, scheme: undefined,
};

const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** All but the unique field. */
function isOf(area: Area, template: Readonly<Record<string, unknown>>): boolean {
  const parts: Readonly<Record<string, unknown>> = { ...area };
  return Object.entries(template).every(([name, value]) => same(normal(parts[name]), normal(value)));
}

const normal = (value: unknown): unknown => (value instanceof Uint8Array ? [...value] : value ?? null);

/** 2048 bits, and odd. */
const isModulus = (value: Uint8Array): boolean => value.length === 256 && (value[0] ?? 0) >= 0x80 && (value[255] ?? 0) % 2 === 1;

/** Check 3. */
export const isEndorsementKey = (area: Area): boolean => (isOf(area, L1) && area.type === "rsa" && isModulus(area.modulus)) || isOf(area, L2);

/** Check 4: what it must be and must not; other attributes are free. */
export function isAttestationKey(area: Area): boolean {
  const wanted = restricted | sign | MADE_HERE;
  return (
    area.type === "ecc" &&
    area.key !== undefined &&
    area.nameAlgorithm === ALG.sha256 &&
    (area.attributes & (wanted | decrypt)) === wanted &&
    same(area.scheme, ECDSA_SHA256)
  );
}

/** Check 24. */
export const isNodeKey = (area: Area): boolean => isOf(area, NODE_KEY);

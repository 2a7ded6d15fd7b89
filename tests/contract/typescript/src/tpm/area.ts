import { createHash, createPublicKey } from "node:crypto";
import { base64url, concat, fromHex, hex, sha256 } from "../pki/bytes.js";
import { readPublicKey, spkiOf, type PublicKey } from "../pki/keys.js";
import { ALG, MOST, P256 } from "./constants.js";
import { Malformed, TpmReader } from "./reader.js";
import { sized, u16, u32 } from "./write.js";

export interface Symmetric {
  readonly algorithm: number;
  readonly keyBits: number;
  readonly mode: number;
}

/** An algorithm and its hash, 0 for one without. */
export interface Scheme {
  readonly algorithm: number;
  readonly hash: number;
}

interface Common {
  readonly nameAlgorithm: number;
  readonly attributes: number;
  readonly policy: Uint8Array;
  /** Undefined: TPM_ALG_NULL. */
  readonly symmetric: Symmetric | undefined;
  readonly scheme: Scheme | undefined;
}

export interface RsaParts extends Common {
  readonly type: "rsa";
  readonly keyBits: number;
  /** 0 stands for 65537. */
  readonly exponent: number;
  readonly modulus: Uint8Array;
}

export interface EccParts extends Common {
  readonly type: "ecc";
  readonly curve: number;
  readonly kdf: Scheme | undefined;
  readonly x: Uint8Array;
  readonly y: Uint8Array;
}

export type AreaParts = RsaParts | EccParts;

/** A TPMT_PUBLIC as it was read: its bytes, its name, and the key, where it is one on P-256. */
export type Area = AreaParts & {
  readonly bytes: Uint8Array;
  readonly name: Uint8Array;
  readonly key: PublicKey | undefined;
};

/** TPMI_ALG_SYM_OBJECT: AES, SM4, Camellia. */
const BLOCK_CIPHERS: readonly number[] = [ALG.aes, 0x0013, 0x0026];

function readSymmetric(reader: TpmReader): Symmetric | undefined {
  const algorithm = reader.u16();
  if (algorithm === ALG.null) return undefined;
  if (!BLOCK_CIPHERS.includes(algorithm)) throw new Malformed(`algorithm ${algorithm} for symmetric`);
  return { algorithm, keyBits: reader.u16(), mode: reader.u16() };
}

function readScheme(reader: TpmReader): Scheme | undefined {
  const algorithm = reader.u16();
  if (algorithm === ALG.null) return undefined;
  if (algorithm === ALG.rsaes) return { algorithm, hash: 0 };
  const hash = reader.u16();
  if (algorithm === ALG.ecdaa) reader.u16();
  return { algorithm, hash };
}

const NAME_HASHES: ReadonlyMap<number, string> = new Map([
  [ALG.sha1, "sha1"], [ALG.sha256, "sha256"], [ALG.sha384, "sha384"], [ALG.sha512, "sha512"],
]);

/** nameAlg, and that hash of the area (Part 1, 16). */
function nameOf(algorithm: number, area: Uint8Array): Uint8Array {
  const hash = NAME_HASHES.get(algorithm);
  if (hash === undefined) throw new Malformed(`a name of algorithm ${algorithm}`);
  return concat(u16(algorithm), new Uint8Array(createHash(hash).update(area).digest()));
}

/** As a number in 32 bytes: some TPMs strip leading zeros. */
export function coordinate(value: Uint8Array): Uint8Array {
  const first = value.findIndex((byte) => byte !== 0);
  const digits = first < 0 ? new Uint8Array() : value.subarray(first);
  if (digits.length > 32) throw new Malformed("a coordinate of more than 256 bits");
  return concat(new Uint8Array(32 - digits.length), digits);
}

/** Undefined for a point of another curve, or of none. */
function pointOf(parts: EccParts): PublicKey | undefined {
  if (parts.curve !== P256) return undefined;
  try {
    return readPublicKey(spkiOf(coordinate(parts.x), coordinate(parts.y)));
  } catch {
    return undefined;
  }
}

export function rsaSpki({ modulus, exponent }: Pick<RsaParts, "modulus" | "exponent">): Uint8Array {
  const bytes = fromHex((exponent === 0 ? 65537 : exponent).toString(16).padStart(8, "0"));
  const first = bytes.findIndex((byte) => byte !== 0);
  const key = createPublicKey({ format: "jwk", key: { kty: "RSA", n: base64url(modulus), e: base64url(bytes.subarray(first)) } });
  return new Uint8Array(key.export({ format: "der", type: "spki" }));
}

/** A TPMT_PUBLIC of RSA or of an elliptic curve, and all of it; else Malformed. */
export function readArea(bytes: Uint8Array): Area {
  const reader = new TpmReader(bytes);
  const type = reader.u16();
  if (type !== ALG.rsa && type !== ALG.ecc) throw new Malformed("neither RSA nor ECC");
  const common = { nameAlgorithm: reader.u16(), attributes: reader.u32(), policy: reader.sized(MOST.digest) };
  const algorithms = { symmetric: readSymmetric(reader), scheme: readScheme(reader) };
  const name = nameOf(common.nameAlgorithm, bytes);
  if (type === ALG.rsa) {
    const numbers = { keyBits: reader.u16(), exponent: reader.u32(), modulus: reader.sized(MOST.modulus) };
    reader.end();
    return { type: "rsa", ...common, ...algorithms, ...numbers, bytes, name, key: undefined };
  }
  const curve = { curve: reader.u16(), kdf: readScheme(reader) };
  const point = { x: reader.sized(MOST.coordinate), y: reader.sized(MOST.coordinate) };
  reader.end();
  const parts: EccParts = { type: "ecc", ...common, ...algorithms, ...curve, ...point };
  return { ...parts, bytes, name, key: pointOf(parts) };
}

/** SubjectPublicKeyInfo of an RSA key, or of one on P-256; Malformed when there is none. */
export function spkiOfArea(area: Area): Uint8Array {
  if (area.type === "rsa") return rsaSpki(area);
  if (area.key === undefined) throw new Malformed("no point of P-256");
  return area.key.spki;
}

/** The name by which an endorsement key is allowed or denied. */
export const calledBy = (area: Area): string => `sha256:${hex(sha256(spkiOfArea(area)))}`;

function writeScheme(scheme: Scheme | undefined): Uint8Array {
  if (scheme === undefined) return u16(ALG.null);
  return scheme.hash === 0 ? u16(scheme.algorithm) : concat(u16(scheme.algorithm), u16(scheme.hash));
}

export function writeArea(parts: AreaParts): Uint8Array {
  const { symmetric } = parts;
  const head = concat(
    u16(parts.type === "rsa" ? ALG.rsa : ALG.ecc), u16(parts.nameAlgorithm), u32(parts.attributes), sized(parts.policy),
    symmetric === undefined ? u16(ALG.null) : concat(u16(symmetric.algorithm), u16(symmetric.keyBits), u16(symmetric.mode)),
    writeScheme(parts.scheme),
  );
  if (parts.type === "rsa") return concat(head, u16(parts.keyBits), u32(parts.exponent), sized(parts.modulus));
  return concat(head, u16(parts.curve), writeScheme(parts.kdf), sized(parts.x), sized(parts.y));
}

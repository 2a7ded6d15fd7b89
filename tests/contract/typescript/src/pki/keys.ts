import { createECDH, createPublicKey, verify, type KeyObject } from "node:crypto";
import { p256 } from "@noble/curves/nist.js";
import { base64url, concat, equal, fromHex, hex, sha256, utf8 } from "./bytes.js";
import { Refused, require } from "./refused.js";

/** SubjectPublicKeyInfo of id-ecPublicKey, prime256v1, BIT STRING of 66 bytes, up to the point's leading 04. */
const SPKI_PREFIX = fromHex("3059301306072a8648ce3d020106082a8648ce3d03010703420004");
const SPKI_LENGTH = 91;
const PIN = /^sha256:[0-9a-f]{64}$/;
const SIGNATURE_LENGTH = 64;

export interface PublicKey {
  readonly spki: Uint8Array;
  readonly pin: string;
  readonly kid: string;
  readonly key: KeyObject;
}

export interface PrivateKey extends PublicKey {
  readonly scalar: Uint8Array;
}

export function isPin(text: string): boolean {
  return PIN.test(text);
}

export function pinOf(spki: Uint8Array): string {
  return `sha256:${hex(sha256(spki))}`;
}

export function coordinates(spki: Uint8Array): { x: string; y: string } {
  const at = SPKI_PREFIX.length;
  return { x: base64url(spki.subarray(at, at + 32)), y: base64url(spki.subarray(at + 32)) };
}

export function spkiOf(x: Uint8Array, y: Uint8Array): Uint8Array {
  return concat(SPKI_PREFIX, x, y);
}

/** The one encoding of a P-256 key; OpenSSL under Node checks that the point lies on the curve. */
export function readPublicKey(spki: Uint8Array): PublicKey {
  require(spki.length === SPKI_LENGTH, "Key", `${spki.length} bytes, not 91`);
  require(equal(spki.subarray(0, SPKI_PREFIX.length), SPKI_PREFIX), "Key", "not an uncompressed point of named curve P-256");
  let key: KeyObject;
  try {
    key = createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" });
  } catch {
    throw new Refused("Key", "the point is not on the curve");
  }
  const { x, y } = coordinates(spki);
  // RFC 7638 section 3.3: required members only, in lexicographic order, no white space.
  const kid = base64url(sha256(utf8(`{"crv":"P-256","kty":"EC","x":"${x}","y":"${y}"}`)));
  return { spki, pin: pinOf(spki), kid, key };
}

export function keyOfScalar(scalar: Uint8Array): PrivateKey {
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(scalar);
  const point = new Uint8Array(ecdh.getPublicKey());
  const spki = spkiOf(point.subarray(1, 33), point.subarray(33));
  return { ...readPublicKey(spki), scalar };
}

/** A key that is the same in every run: the scalar is SHA-256 of the name. Below n but for one name in 2^32. */
export function namedKey(name: string): PrivateKey {
  return keyOfScalar(sha256(utf8(`bcd typescript fixture key: ${name}`)));
}

/** A key of this run alone. */
export function newKey(): PrivateKey {
  const ecdh = createECDH("prime256v1");
  ecdh.generateKeys();
  // Leading zero bytes are left out by getPrivateKey.
  return keyOfScalar(fromHex(ecdh.getPrivateKey("hex").padStart(64, "0")));
}

/** RFC 6979, so that fixtures come out the same in every run; s is left as it falls, high or low. */
export function signP1363(key: PrivateKey, data: Uint8Array): Uint8Array {
  return p256.sign(sha256(data), key.scalar, { prehash: false, lowS: false, format: "compact" });
}

export function verifyP1363(key: PublicKey, data: Uint8Array, signature: Uint8Array): boolean {
  if (signature.length !== SIGNATURE_LENGTH) return false;
  return verify("sha256", data, { key: key.key, dsaEncoding: "ieee-p1363" }, signature);
}

/** The signature inside certificates and requests. */
export function signDer(key: PrivateKey, data: Uint8Array): Uint8Array {
  return p256.sign(sha256(data), key.scalar, { prehash: false, lowS: false, format: "der" });
}

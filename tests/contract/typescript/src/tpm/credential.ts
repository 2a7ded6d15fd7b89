import { constants, createCipheriv, createDecipheriv, createECDH, createHmac, createPrivateKey, createPublicKey, privateDecrypt, publicEncrypt } from "node:crypto";
import { concat, equal, sha256, utf8 } from "../pki/bytes.js";
import { coordinates, keyOfScalar, readPublicKey, spkiOf, type PrivateKey } from "../pki/keys.js";
import { require, Refused } from "../pki/refused.js";
import { coordinate, rsaSpki, type Area } from "./area.js";
import { MOST } from "./constants.js";
import { TpmReader } from "./reader.js";
import { sized, u32 } from "./write.js";

/** What TPM2_MakeCredential answers, each without the size of its TPM2B. */
export interface Credential {
  readonly credential: Uint8Array;
  readonly encryptedSecret: Uint8Array;
}

const LENGTH = 32;
const NOTHING = new Uint8Array();
const IV = new Uint8Array(16);

/** A label with the zero byte that ends it (Part 1, 11.4.10). */
const label = (text: string): Uint8Array => concat(utf8(text), Uint8Array.of(0));

const hmac = (key: Uint8Array, data: Uint8Array): Uint8Array => new Uint8Array(createHmac("sha256", key).update(data).digest());

/** KDFa of SHA-256, at most 256 bits (Part 1, 11.4.10.2). */
function kdfA(key: Uint8Array, purpose: string, context: Uint8Array, bits: number): Uint8Array {
  return hmac(key, concat(u32(1), label(purpose), context, u32(bits))).subarray(0, bits / 8);
}

/** KDFe of SHA-256, 256 bits (Part 1, 11.4.10.3). */
function kdfE(z: Uint8Array, purpose: string, ephemeralX: Uint8Array, staticX: Uint8Array): Uint8Array {
  return sha256(concat(u32(1), z, label(purpose), ephemeralX, staticX));
}

function mgf1(seed: Uint8Array, length: number): Uint8Array {
  const blocks: Uint8Array[] = [];
  for (let n = 0; n * LENGTH < length; n += 1) blocks.push(sha256(concat(seed, u32(n))));
  return concat(...blocks).subarray(0, length);
}

const xor = (one: Uint8Array, other: Uint8Array): Uint8Array => one.map((byte, n) => byte ^ (other[n] ?? 0));

/** RSAES-OAEP of SHA-256 and label IDENTITY (RFC 8017, 7.1.1) with a given `salt`: Node's own draws it. */
function oaep(spki: Uint8Array, seed: Uint8Array, salt: Uint8Array): Uint8Array {
  const key = createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" });
  const size = (key.asymmetricKeyDetails?.modulusLength ?? 0) / 8;
  const padding = new Uint8Array(size - seed.length - 2 * LENGTH - 2);
  const block = concat(sha256(label("IDENTITY")), padding, Uint8Array.of(1), seed);
  const masked = xor(block, mgf1(salt, block.length));
  const encoded = concat(Uint8Array.of(0), xor(salt, mgf1(masked, LENGTH)), masked);
  return new Uint8Array(publicEncrypt({ key, padding: constants.RSA_NO_PADDING }, encoded));
}

function sharedX(key: PrivateKey, x: Uint8Array, y: Uint8Array): Uint8Array {
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(key.scalar);
  return new Uint8Array(ecdh.computeSecret(concat(Uint8Array.of(4), x, y)));
}

const xOf = (spki: Uint8Array): Uint8Array => Uint8Array.from(Buffer.from(coordinates(spki).x, "base64url"));
const yOf = (spki: Uint8Array): Uint8Array => Uint8Array.from(Buffer.from(coordinates(spki).y, "base64url"));

/** `random`: 32 bytes from which seed, salt and ephemeral key are taken, so that fixtures are the same in every run. */
export function makeCredential(endorsementKey: Area, name: Uint8Array, secret: Uint8Array, random: Uint8Array): Credential {
  if (endorsementKey.type === "rsa") {
    const seed = sha256(concat(utf8("seed"), random));
    return { credential: protect(seed, name, secret), encryptedSecret: oaep(rsaSpki(endorsementKey), seed, sha256(concat(utf8("salt"), random))) };
  }
  const ephemeral = keyOfScalar(sha256(concat(utf8("ephemeral"), random)));
  const [x, y] = [coordinate(endorsementKey.x), coordinate(endorsementKey.y)];
  const seed = kdfE(sharedX(ephemeral, x, y), "IDENTITY", xOf(ephemeral.spki), x);
  return { credential: protect(seed, name, secret), encryptedSecret: concat(sized(xOf(ephemeral.spki)), sized(yOf(ephemeral.spki))) };
}

/** TPMS_ID_OBJECT: an integrity HMAC as TPM2B, then the encrypted TPM2B of the secret, size and all (Part 1, 24). */
function protect(seed: Uint8Array, name: Uint8Array, secret: Uint8Array): Uint8Array {
  const cipher = createCipheriv("aes-128-cfb", kdfA(seed, "STORAGE", name, 128), IV);
  const encrypted = concat(cipher.update(sized(secret)), cipher.final());
  return concat(sized(integrity(seed, encrypted, name)), encrypted);
}

const integrity = (seed: Uint8Array, encrypted: Uint8Array, name: Uint8Array): Uint8Array =>
  hmac(kdfA(seed, "INTEGRITY", NOTHING, 256), concat(encrypted, name));

/** The private half of an endorsement key, P-256 or RSA as PKCS#8 DER. */
export type Opener = PrivateKey | { readonly pkcs8: Uint8Array };

function openSeed(opener: Opener, encryptedSecret: Uint8Array): Uint8Array {
  if ("pkcs8" in opener) {
    const key = createPrivateKey({ key: Buffer.from(opener.pkcs8), format: "der", type: "pkcs8" });
    const options = { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha256", oaepLabel: Buffer.from(label("IDENTITY")) };
    return new Uint8Array(privateDecrypt(options, encryptedSecret));
  }
  const reader = new TpmReader(encryptedSecret);
  const [x, y] = [coordinate(reader.sized(MOST.coordinate)), coordinate(reader.sized(MOST.coordinate))];
  reader.end();
  readPublicKey(spkiOf(x, y));
  return kdfE(sharedX(opener, x, y), "IDENTITY", x, xOf(opener.spki));
}

/** What TPM2_ActivateCredential does: the secret, or a refusal of the row `credential`. */
export function openCredential(opener: Opener, name: Uint8Array, { credential, encryptedSecret }: Credential): Uint8Array {
  try {
    const seed = openSeed(opener, encryptedSecret);
    const reader = new TpmReader(credential);
    const mac = reader.sized(MOST.digest);
    const encrypted = reader.bytes(credential.length - 2 - mac.length);
    require(equal(mac, integrity(seed, encrypted, name)), "credential", "another integrity value");
    const cipher = createDecipheriv("aes-128-cfb", kdfA(seed, "STORAGE", name, 128), IV);
    const opened = new TpmReader(concat(cipher.update(encrypted), cipher.final()));
    const secret = opened.sized(MOST.digest);
    opened.end();
    return secret;
  } catch (error) {
    throw new Refused("credential", error instanceof Error ? error.message : String(error));
  }
}

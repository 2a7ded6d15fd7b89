import { Aes256Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from "@hpke/core";
import { concat, fromUtf8, sha256, utf8 } from "./bytes.js";
import { coordinates, type PrivateKey, type PublicKey } from "./keys.js";
import { Refused, require } from "./refused.js";

const ENC_LENGTH = 65;
const TAG_LENGTH = 16;
/** 4096 bytes of token, enc and tag. */
const MAX_SEALED = 4177;

function suite(): CipherSuite {
  return new CipherSuite({ kem: new DhkemP256HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() });
}

export function sealInfo(csr: Uint8Array): Uint8Array {
  return concat(utf8("bc-join-seal-v1"), new Uint8Array(1), sha256(csr));
}

const exact = (data: Uint8Array): ArrayBuffer => Uint8Array.from(data).buffer;

/** `ephemeral` is the key material of a fixture that comes out the same in every run; never given elsewhere. */
export async function seal(token: string, csr: Uint8Array, recipient: PublicKey, ephemeral?: Uint8Array): Promise<Uint8Array> {
  const hpke = suite();
  const jwk = { kty: "EC", crv: "P-256", ...coordinates(recipient.spki) };
  const recipientPublicKey = await hpke.kem.importKey("jwk", jwk, true);
  const sender = { recipientPublicKey, info: exact(sealInfo(csr)), ...(ephemeral === undefined ? {} : { ekm: exact(ephemeral) }) };
  const { ct, enc } = await hpke.seal(sender, exact(utf8(token)));
  return concat(new Uint8Array(enc), new Uint8Array(ct));
}

export async function unseal(sealed: Uint8Array, csr: Uint8Array, recipient: PrivateKey): Promise<string> {
  require(sealed.length <= MAX_SEALED, "sealed", "more than 4177 bytes");
  require(sealed.length > ENC_LENGTH + TAG_LENGTH, "sealed", "no room for enc, tag and a token");
  const hpke = suite();
  const recipientKey = await hpke.kem.importKey("raw", exact(recipient.scalar), false);
  let plain: Uint8Array;
  try {
    const enc = exact(sealed.subarray(0, ENC_LENGTH));
    const ct = exact(sealed.subarray(ENC_LENGTH));
    plain = new Uint8Array(await hpke.open({ recipientKey, enc, info: exact(sealInfo(csr)) }, ct));
  } catch {
    // One refusal for a bad point and a bad tag: telling them apart would help only an attacker.
    throw new Refused("sealed", "does not open beside this request");
  }
  // No line end in a sealed token, so not readToken: it would forgive one.
  const token = fromUtf8(plain);
  require(/^[A-Za-z0-9._~+/=-]{16,4096}$/.test(token), "token", "what was sealed is no join token");
  return token;
}

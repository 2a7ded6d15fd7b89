import { checkPrimeSync, createPrivateKey } from "node:crypto";
import { base64url, concat, fromHex, hex, sha256, utf8 } from "../pki/bytes.js";
import { u32 } from "./write.js";

export interface RsaKey {
  readonly pkcs8: Uint8Array;
  readonly modulus: Uint8Array;
}

const EXPONENT = 65537n;
const TOP_TWO_BITS = 3n << 1022n;

const octets = (value: bigint): Uint8Array => {
  const text = value.toString(16);
  return fromHex(text.length % 2 === 0 ? text : `0${text}`);
};

/** The first prime of 1024 bits, both highest bits set, from SHA-256 of the name on. */
function prime(name: string): bigint {
  const blocks = Array.from({ length: 4 }, (_, n) => sha256(concat(utf8(name), u32(n))));
  let candidate = BigInt(`0x${hex(concat(...blocks))}`) | TOP_TWO_BITS | 1n;
  while (candidate % EXPONENT === 1n || !checkPrimeSync(candidate)) candidate += 2n;
  return candidate;
}

function inverse(value: bigint, modulus: bigint): bigint {
  let [r, nextR, t, nextT] = [modulus, value % modulus, 0n, 1n];
  while (nextR !== 0n) {
    const quotient = r / nextR;
    [r, nextR, t, nextT] = [nextR, r - quotient * nextR, nextT, t - quotient * nextT];
  }
  return (t + modulus) % modulus;
}

/** RSA of 2048 bits and exponent 65537, the same in every run. For fixtures: nobody draws a secret like this. */
export function namedRsaKey(name: string): RsaKey {
  const [p, q] = [prime(`bcd typescript fixture p: ${name}`), prime(`bcd typescript fixture q: ${name}`)];
  const d = inverse(EXPONENT, (p - 1n) * (q - 1n));
  const parts = { n: p * q, e: EXPONENT, d, p, q, dp: d % (p - 1n), dq: d % (q - 1n), qi: inverse(q, p) };
  const jwk = Object.fromEntries(Object.entries(parts).map(([part, value]) => [part, base64url(octets(value))]));
  const key = createPrivateKey({ format: "jwk", key: { kty: "RSA", ...jwk } });
  return { pkcs8: new Uint8Array(key.export({ format: "der", type: "pkcs8" })), modulus: octets(parts.n) };
}

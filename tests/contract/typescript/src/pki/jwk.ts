import { fromBase64url, fromUtf8, utf8 } from "./bytes.js";
import { coordinates, readPublicKey, spkiOf, type PublicKey } from "./keys.js";
import { Refused, require } from "./refused.js";
import { parseStrict } from "./json.js";

const MAX_BYTES = 4096;

export function makeRecipientJwk(key: PublicKey): Uint8Array {
  const jwk = { kty: "EC", crv: "P-256", ...coordinates(key.spki), use: "enc", alg: "HPKE-7", kid: key.kid };
  return utf8(`${JSON.stringify(jwk)}\n`);
}

function coordinate(value: unknown): Uint8Array {
  require(typeof value === "string" && value.length === 43, "JWK", "x and y are 43 characters of base64url each");
  try {
    return fromBase64url(value);
  } catch {
    throw new Refused("JWK", "x and y are 43 characters of base64url each");
  }
}

/** `join-encryption.jwk`: refused before anything is sealed to a key that is not pinned. */
export function readRecipientJwk(data: Uint8Array, pins: readonly string[]): PublicKey {
  require(data.length <= MAX_BYTES, "JWK", "more than 4096 bytes");
  let jwk: ReadonlyMap<string, unknown>;
  try {
    jwk = parseStrict(fromUtf8(data));
  } catch {
    throw new Refused("JWK", "not one JSON object in UTF-8");
  }
  require(!jwk.has("d"), "JWK", "a private key");
  require(jwk.get("kty") === "EC" && jwk.get("crv") === "P-256", "JWK", "not EC and P-256");
  const key = readPublicKey(spkiOf(coordinate(jwk.get("x")), coordinate(jwk.get("y"))));
  require(!jwk.has("use") || jwk.get("use") === "enc", "JWK", "use is not enc");
  require(!jwk.has("kid") || jwk.get("kid") === key.kid, "JWK", "kid is not the thumbprint");
  require(!jwk.has("alg") || jwk.get("alg") === "HPKE-7", "JWK", "alg is not HPKE-7");
  require(pins.includes(key.pin), "pin", "not the key of join_encryption_key_pin");
  return key;
}

import { get } from "node:https";
import type { X509Certificate } from "node:crypto";
import { readRecipientJwk } from "../pki/jwk.js";
import { fromBase64url, fromUtf8, utf8 } from "../pki/bytes.js";
import { parseStrict } from "../pki/json.js";
import { readPublicKey, spkiOf, type PublicKey } from "../pki/keys.js";
import { isTrustDomain } from "../pki/names.js";
import { require } from "../pki/refused.js";

const MAX_BYTES = 64 * 1024;
const CHECK = "well-known";

export interface Fetched {
  readonly status: number;
  readonly type: string | undefined;
  readonly body: Uint8Array;
  readonly protocol: string | null;
}

/** One GET whose only root is the pinned CA; redirects are not followed. */
export function fetchPath(port: number, path: string, ca: X509Certificate): Promise<Fetched> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path, servername: "", ca: ca.toString(), minVersion: "TLSv1.3" as const, agent: false };
    const request = get(options, (response) => {
      const protocol = "getProtocol" in response.socket && typeof response.socket.getProtocol === "function" ? String(response.socket.getProtocol()) : null;
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, type: response.headers["content-type"], body: new Uint8Array(Buffer.concat(parts)), protocol });
      });
    });
    request.on("error", reject);
  });
}

export interface WellKnown {
  readonly trustDomain: string;
  readonly join: string;
  readonly gateway: string;
  readonly encryption: PublicKey;
  readonly signing: PublicKey;
  readonly servingCa: string;
  readonly lifetimes: ReadonlyMap<string, unknown>;
}

function text(fields: ReadonlyMap<string, unknown>, name: string): string {
  const value = fields.get(name);
  require(typeof value === "string", CHECK, `${name} is no text`);
  return value;
}

function object(fields: ReadonlyMap<string, unknown>, name: string): ReadonlyMap<string, unknown> {
  const value = fields.get(name);
  require(typeof value === "object" && value !== null, CHECK, `${name} is no object`);
  return new Map(Object.entries(value));
}

function signingKey(jwk: ReadonlyMap<string, unknown>, pins: readonly string[]): PublicKey {
  require(text(jwk, "kty") === "EC" && text(jwk, "crv") === "P-256" && text(jwk, "use") === "sig", CHECK, "no P-256 signing key");
  const key = readPublicKey(spkiOf(fromBase64url(text(jwk, "x")), fromBase64url(text(jwk, "y"))));
  require(text(jwk, "kid") === key.kid && !jwk.has("d"), CHECK, "kid is not the thumbprint, or the key is private");
  require(pins.includes(key.pin), "pin", "not the key of join_signing_key_pin");
  return key;
}

/** The document's table; nothing in it is believed for itself, so each key is held against its pin. */
export function readWellKnown(body: Uint8Array, pins: { encryption: readonly string[]; signing: readonly string[] }): WellKnown {
  require(body.length <= MAX_BYTES, CHECK, "more than 64 KiB");
  const fields = parseStrict(fromUtf8(body));
  require(fields.get("version") === 1, CHECK, "another version");
  const trustDomain = text(fields, "trustDomain");
  require(isTrustDomain(trustDomain), CHECK, "no trust domain");
  const jwk = utf8(JSON.stringify(fields.get("joinEncryptionKey") ?? null));
  return {
    trustDomain,
    join: text(fields, "join"),
    gateway: text(fields, "gateway"),
    encryption: readRecipientJwk(jwk, pins.encryption),
    signing: signingKey(object(fields, "joinSigningKey"), pins.signing),
    servingCa: text(fields, "servingCa"),
    lifetimes: object(fields, "leafLifetimeSeconds"),
  };
}

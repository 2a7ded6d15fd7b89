import { concat, fromHex } from "../pki/bytes.js";
import type { PrivateKey } from "../pki/keys.js";

export function pem(label: string, der: Uint8Array): string {
  const lines = Buffer.from(der).toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/** RFC 5208 around RFC 5915: version 0, id-ecPublicKey on prime256v1, the scalar, the point in [1]. */
export function pkcs8(key: PrivateKey): Uint8Array {
  const point = key.spki.subarray(26);
  return concat(
    fromHex("308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420"), key.scalar,
    fromHex("a144034200"), point,
  );
}

import { createHash } from "node:crypto";

export function sha256(data: Uint8Array): Uint8Array {
  return new Uint8Array(createHash("sha256").update(data).digest());
}

export function concat(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

export function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Refuses what is not UTF-8, and keeps a byte-order mark so that the caller sees it. */
export function fromUtf8(data: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
}

export const hex = (data: Uint8Array): string => Buffer.from(data).toString("hex");
export const fromHex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "hex"));
export const base64 = (data: Uint8Array): string => Buffer.from(data).toString("base64");
export const base64url = (data: Uint8Array): string => Buffer.from(data).toString("base64url");

/** Node's decoder skips what it does not know; a text that is not the one encoding of its bytes is refused here. */
export function fromBase64(text: string): Uint8Array {
  const data = new Uint8Array(Buffer.from(text, "base64"));
  if (base64(data) !== text) throw new Error("not base64 of RFC 4648 section 4 with padding");
  return data;
}

export function fromBase64url(text: string): Uint8Array {
  const data = new Uint8Array(Buffer.from(text, "base64url"));
  if (base64url(data) !== text) throw new Error("not base64url without padding");
  return data;
}

import { concat } from "../pki/bytes.js";

function number(size: 1 | 2 | 4 | 8, value: number | bigint): Uint8Array {
  const out = new Uint8Array(8);
  new DataView(out.buffer).setBigUint64(0, BigInt(value));
  return out.slice(8 - size);
}

export const u8 = (value: number): Uint8Array => number(1, value);
export const u16 = (value: number): Uint8Array => number(2, value);
export const u32 = (value: number): Uint8Array => number(4, value);
export const u64 = (value: bigint): Uint8Array => number(8, value);
/** A TPM2B. */
export const sized = (value: Uint8Array): Uint8Array => concat(u16(value.length), value);

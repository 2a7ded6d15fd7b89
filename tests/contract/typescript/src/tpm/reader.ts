/** Bytes that end too early, or that are no such structure. */
export class Malformed extends Error {}

/** Reads structures of TPM 2.0 Library Part 2: numbers big-endian, a TPM2B with its size before it. */
export class TpmReader {
  private at = 0;
  private readonly view: DataView;

  constructor(private readonly data: Uint8Array) {
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  }

  bytes(length: number): Uint8Array {
    const from = this.take(length);
    return this.data.slice(from, from + length);
  }

  u8(): number {
    return this.view.getUint8(this.take(1));
  }

  u16(): number {
    return this.view.getUint16(this.take(2));
  }

  u32(): number {
    return this.view.getUint32(this.take(4));
  }

  u64(): bigint {
    return this.view.getBigUint64(this.take(8));
  }

  /** A TPM2B of at most so many bytes. */
  sized(most: number): Uint8Array {
    const length = this.u16();
    if (length > most) throw new Malformed(`${length} bytes, at most ${most}`);
    return this.bytes(length);
  }

  end(): void {
    if (this.at !== this.data.length) throw new Malformed(`${this.data.length - this.at} bytes left over`);
  }

  private take(length: number): number {
    const from = this.at;
    if (from + length > this.data.length) throw new Malformed("it ends too early");
    this.at += length;
    return from;
  }
}

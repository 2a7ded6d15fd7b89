import { concat } from "../pki/bytes.js";
import { ATTEST, GENERATED, MOST, MOST_SELECTIONS } from "./constants.js";
import { Malformed, TpmReader } from "./reader.js";
import { sized, u16, u32, u64, u8 } from "./write.js";

/** What every TPMS_ATTEST has before what it attests. */
export interface AttestHead {
  readonly magic: number;
  readonly type: number;
  readonly qualifiedSigner: Uint8Array;
  readonly extraData: Uint8Array;
  readonly clock: bigint;
  readonly resetCount: number;
  readonly restartCount: number;
  readonly safe: boolean;
  readonly firmwareVersion: bigint;
}

export interface Selection {
  readonly bank: number;
  readonly bits: Uint8Array;
}

export interface Quote extends AttestHead {
  readonly selections: readonly Selection[];
  readonly digest: Uint8Array;
}

export interface Certification extends AttestHead {
  readonly name: Uint8Array;
  readonly qualifiedName: Uint8Array;
}

function readHead(reader: TpmReader): AttestHead {
  const ids = { magic: reader.u32(), type: reader.u16(), qualifiedSigner: reader.sized(MOST.name), extraData: reader.sized(MOST.data) };
  const clock = { clock: reader.u64(), resetCount: reader.u32(), restartCount: reader.u32() };
  return { ...ids, ...clock, safe: reader.u8() !== 0, firmwareVersion: reader.u64() };
}

/** Magic and type are read and not looked at: they are checks of their own. */
export function readQuote(bytes: Uint8Array): Quote {
  const reader = new TpmReader(bytes);
  const head = readHead(reader);
  const count = reader.u32();
  if (count > MOST_SELECTIONS.count) throw new Malformed(`${count} selections`);
  const selections: Selection[] = [];
  for (let n = 0; n < count; n += 1) {
    const [bank, length] = [reader.u16(), reader.u8()];
    if (length > MOST_SELECTIONS.bytes) throw new Malformed(`a selection of ${length} bytes`);
    selections.push({ bank, bits: reader.bytes(length) });
  }
  const digest = reader.sized(MOST.digest);
  reader.end();
  return { ...head, selections, digest };
}

export function readCertification(bytes: Uint8Array): Certification {
  const reader = new TpmReader(bytes);
  const head = readHead(reader);
  const names = { name: reader.sized(MOST.name), qualifiedName: reader.sized(MOST.name) };
  reader.end();
  return { ...head, ...names };
}

function writeHead(head: AttestHead): Uint8Array {
  return concat(
    u32(head.magic), u16(head.type), sized(head.qualifiedSigner), sized(head.extraData), u64(head.clock),
    u32(head.resetCount), u32(head.restartCount), u8(head.safe ? 1 : 0), u64(head.firmwareVersion),
  );
}

export function writeQuote(quote: Quote): Uint8Array {
  const selections = quote.selections.map(({ bank, bits }) => concat(u16(bank), u8(bits.length), bits));
  return concat(writeHead(quote), u32(selections.length), ...selections, sized(quote.digest));
}

export function writeCertification(one: Certification): Uint8Array {
  return concat(writeHead(one), sized(one.name), sized(one.qualifiedName));
}

/** A head that is right, for `type`. */
export function head(type: keyof typeof ATTEST, qualifiedSigner: Uint8Array, extraData: Uint8Array): AttestHead {
  return {
    magic: GENERATED, type: ATTEST[type], qualifiedSigner, extraData,
    clock: 1_234_567n, resetCount: 4, restartCount: 1, safe: true, firmwareVersion: 0x2024_0125_0012_0000n,
  };
}

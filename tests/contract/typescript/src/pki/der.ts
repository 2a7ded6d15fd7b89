import { AsnConvert } from "@peculiar/asn1-schema";
import { equal } from "./bytes.js";

export const OID = {
  commonName: "2.5.4.3",
  organizationalUnit: "2.5.4.11",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  keyUsage: "2.5.29.15",
  extendedKeyUsage: "2.5.29.37",
  clientAuth: "1.3.6.1.5.5.7.3.2",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  permanentIdentifier: "1.3.6.1.5.5.7.8.3",
} as const;

export const toBytes = (data: ArrayBuffer | ArrayBufferView): Uint8Array =>
  ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);

export function encode(value: object): Uint8Array {
  return toBytes(AsnConvert.serialize(value));
}

/** The parser takes BER and passes over what follows; only what it writes back byte for byte was DER. */
export function decode<T>(data: Uint8Array, type: new () => T): T {
  const value = AsnConvert.parse(data, type);
  if (!equal(toBytes(AsnConvert.serialize(value)), data)) throw new Error("not DER, or more follows it");
  return value;
}

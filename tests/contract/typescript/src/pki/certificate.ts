import { X509Certificate } from "node:crypto";
import { Certificate, type Extension, type Name } from "@peculiar/asn1-x509";
import { toBytes, decode, encode } from "./der.js";
import { require, under, type Check } from "./refused.js";

/** What both a leaf and an issuer are read into. */
export interface Parsed {
  readonly der: Uint8Array;
  /** The same bytes as OpenSSL under Node takes them. */
  readonly x509: X509Certificate;
  readonly spki: Uint8Array;
  readonly subject: Name;
  readonly subjectDer: Uint8Array;
  readonly issuerDer: Uint8Array;
  readonly signatureAlgorithm: string;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly extensions: readonly Extension[];
}

/** X.509 version 3, DER, positive serial number; no extension twice (RFC 5280 section 4.2). */
export function readCertificate(der: Uint8Array, check: Check): Parsed {
  const certificate = under(check, () => decode(der, Certificate));
  const x509 = under(check, () => new X509Certificate(der));
  const tbs = certificate.tbsCertificate;
  require(tbs.version === 2, check, "not X.509 version 3");
  const serial = toBytes(tbs.serialNumber);
  require((serial[0] ?? 0x80) < 0x80 && serial.some((byte) => byte !== 0), check, "the serial number is not positive");
  const inner = encode(tbs.signature);
  const outer = encode(certificate.signatureAlgorithm);
  require(Buffer.compare(inner, outer) === 0, check, "two signature algorithms (RFC 5280 section 4.1.1.2)");
  const extensions = [...(tbs.extensions ?? [])];
  require(new Set(extensions.map((one) => one.extnID)).size === extensions.length, check, "an extension twice");
  return {
    der,
    x509,
    spki: encode(tbs.subjectPublicKeyInfo),
    subject: tbs.subject,
    subjectDer: encode(tbs.subject),
    issuerDer: encode(tbs.issuer),
    signatureAlgorithm: certificate.signatureAlgorithm.algorithm,
    notBefore: tbs.validity.notBefore.getTime().getTime(),
    notAfter: tbs.validity.notAfter.getTime().getTime(),
    extensions,
  };
}

export function inDate(certificate: Parsed, at: number): boolean {
  return certificate.notBefore <= at && at < certificate.notAfter;
}

export function extension(certificate: Parsed, oid: string): Extension | undefined {
  return certificate.extensions.find((one) => one.extnID === oid);
}

export const extensionValue = (one: Extension): Uint8Array => toBytes(one.extnValue.buffer);

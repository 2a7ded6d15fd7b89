import { AsnConvert, OctetString } from "@peculiar/asn1-schema";
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  Name,
  OtherName,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
} from "@peculiar/asn1-x509";
import { concat, fromHex, utf8 } from "./bytes.js";
import { encode, OID } from "./der.js";
import { signDer, type PrivateKey } from "./keys.js";
import { spiffeUri, type SpiffeId } from "./names.js";

const MINUTE_MS = 60_000;

export const utf8Attribute = (type: string, text: string): AttributeTypeAndValue =>
  new AttributeTypeAndValue({ type, value: new AttributeValue({ utf8String: text }) });

/** One RDN for each attribute. */
export const name = (attributes: AttributeTypeAndValue[]): Name =>
  new Name(attributes.map((one) => new RelativeDistinguishedName([one])));

const buffer = (data: Uint8Array): ArrayBuffer => Uint8Array.from(data).buffer;

export const makeExtension = (extnID: string, critical: boolean, value: Uint8Array): Extension =>
  new Extension({ extnID, critical, extnValue: new OctetString(buffer(value)) });

export const uriName = (uri: string): GeneralName => new GeneralName({ uniformResourceIdentifier: uri });

/** SEQUENCE { UTF8String } of fewer than 124 bytes, inside otherName. */
export function permanentIdentifierName(text: string, typeId: string = OID.permanentIdentifier): GeneralName {
  const content = utf8(text);
  const value = concat(Uint8Array.of(0x30, content.length + 2, 0x0c, content.length), content);
  return new GeneralName({ otherName: new OtherName({ typeId, value: buffer(value) }) });
}

export const altNames = (names: GeneralName[], critical = false): Extension =>
  makeExtension(OID.subjectAltName, critical, encode(new SubjectAlternativeName(names)));

export const constraints = (cA: boolean): Extension =>
  makeExtension(OID.basicConstraints, true, encode(new BasicConstraints({ cA })));

/** The BIT STRING in hex: 03020780 digitalSignature, 03020106 keyCertSign and cRLSign. */
export const usage = (bits: string): Extension => makeExtension(OID.keyUsage, true, fromHex(bits));

export const extendedUsage = (purposes: string[]): Extension =>
  makeExtension(OID.extendedKeyUsage, false, encode(new ExtendedKeyUsage(purposes)));

export interface CertificateParts {
  readonly subject: Name;
  readonly issuer: Name;
  readonly spki: Uint8Array;
  readonly signer: PrivateKey;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly extensions: readonly Extension[];
  readonly serial?: Uint8Array;
  readonly version?: number;
  readonly algorithm?: string;
  readonly sign?: (signer: PrivateKey, tbs: Uint8Array) => Uint8Array;
}

export function makeCertificate(parts: CertificateParts): Uint8Array {
  const algorithm = new AlgorithmIdentifier({ algorithm: parts.algorithm ?? OID.ecdsaWithSha256 });
  const tbs = new TBSCertificate({
    version: parts.version ?? 2,
    serialNumber: buffer(parts.serial ?? fromHex("0123456789abcdef")),
    signature: algorithm,
    issuer: parts.issuer,
    validity: new Validity({ notBefore: parts.notBefore, notAfter: parts.notAfter }),
    subject: parts.subject,
    subjectPublicKeyInfo: AsnConvert.parse(parts.spki, SubjectPublicKeyInfo),
    extensions: new Extensions([...parts.extensions]),
  });
  const signature = (parts.sign ?? signDer)(parts.signer, encode(tbs));
  return encode(new Certificate({ tbsCertificate: tbs, signatureAlgorithm: algorithm, signatureValue: buffer(signature) }));
}

export const caName = (text: string): Name => name([utf8Attribute(OID.commonName, text)]);

export function caExtensions(): Extension[] {
  return [constraints(true), usage("03020106")];
}

export function leafSubject(nodeId: string, role: string): Name {
  return name([utf8Attribute(OID.commonName, nodeId), utf8Attribute(OID.organizationalUnit, `bc-role:${role}`)]);
}

export function leafExtensions(id: SpiffeId, attestationKey?: string): Extension[] {
  const names = [uriName(spiffeUri(id))];
  if (attestationKey !== undefined) names.push(permanentIdentifierName(attestationKey));
  return [altNames(names), constraints(false), usage("03020780"), extendedUsage([OID.clientAuth, OID.serverAuth])];
}

/** notBefore = issue − min(5 min, 10 % of the lifetime), at whole seconds as X.509 has them. */
export function validity(issue: Date, lifetimeMs: number): { notBefore: Date; notAfter: Date } {
  const early = Math.min(5 * MINUTE_MS, lifetimeMs / 10);
  const start = Math.floor((issue.getTime() - early) / 1000) * 1000;
  return { notBefore: new Date(start), notAfter: new Date(start + lifetimeMs) };
}

import { createPublicKey, verify } from "node:crypto";
import { AsnConvert } from "@peculiar/asn1-schema";
import { Attributes, CertificationRequest, CertificationRequestInfo } from "@peculiar/asn1-csr";
import { AlgorithmIdentifier, SubjectPublicKeyInfo, type Name } from "@peculiar/asn1-x509";
import { decode, encode, OID, toBytes } from "./der.js";
import { name, utf8Attribute } from "./make.js";
import { readPublicKey, signDer, type PrivateKey, type PublicKey } from "./keys.js";
import { require, under } from "./refused.js";

const MAX_BYTES = 4096;

export interface RequestParts {
  readonly subject?: Name;
  readonly attributes?: Attributes;
  readonly version?: number;
  readonly signer?: PrivateKey;
}

/** What a node sends; `parts` are for requests that must be refused. */
export function makeRequest(key: PrivateKey, parts: RequestParts = {}): Uint8Array {
  const info = new CertificationRequestInfo({
    version: parts.version ?? 0,
    subject: parts.subject ?? name([utf8Attribute(OID.commonName, "bcd node")]),
    subjectPKInfo: AsnConvert.parse(key.spki, SubjectPublicKeyInfo),
    attributes: parts.attributes ?? new Attributes(),
  });
  const signature = signDer(parts.signer ?? key, encode(info));
  return encode(
    new CertificationRequest({
      certificationRequestInfo: info,
      signatureAlgorithm: new AlgorithmIdentifier({ algorithm: OID.ecdsaWithSha256 }),
      signature: Uint8Array.from(signature).buffer,
    }),
  );
}

/** The row `csr` of JoinRequest; only the key comes out of it. */
export function readRequest(der: Uint8Array): PublicKey {
  require(der.length <= MAX_BYTES, "csr", "more than 4096 bytes");
  const request = under("csr", () => decode(der, CertificationRequest));
  const info = request.certificationRequestInfo;
  require(info.version === 0, "csr", "not version 1 of PKCS#10");
  const attribute = info.subject[0]?.[0];
  require(
    info.subject.length === 1 && info.subject[0]?.length === 1 && attribute?.type === OID.commonName,
    "csr",
    "the subject is not one CN",
  );
  require(attribute.value.toString() === "bcd node", "csr", "the subject is not CN=bcd node");
  // RFC 2986 has the attributes' [0] always; the library would take its absence for an empty one.
  require(info.attributes !== undefined && info.attributes.length === 0, "csr", "attributes, or no field for them");
  const algorithm = request.signatureAlgorithm;
  require(
    algorithm.algorithm === OID.ecdsaWithSha256 && algorithm.parameters === undefined,
    "csr",
    "not ECDSA with SHA-256 (RFC 5758: no parameters)",
  );
  const key = under("csr", () => readPublicKey(encode(info.subjectPKInfo)));
  const publicKey = createPublicKey({ key: Buffer.from(key.spki), format: "der", type: "spki" });
  const signed = encode(info);
  const verifies = verify("sha256", signed, { key: publicKey, dsaEncoding: "der" }, toBytes(request.signature));
  require(verifies, "csr", "not signed by its own key");
  return key;
}

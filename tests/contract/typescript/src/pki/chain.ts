import { BasicConstraints } from "@peculiar/asn1-x509";
import { equal } from "./bytes.js";
import { extension, extensionValue, inDate, readCertificate, type Parsed } from "./certificate.js";
import { decode, OID } from "./der.js";
import { readLeaf, type Leaf } from "./leaf.js";
import { Refused, require, under } from "./refused.js";

const MAX_CHAIN = 5;
/** keyCertSign is bit 5 of the BIT STRING: 0x04 of its first content byte, which follows tag, length and unused bits. */
const KEY_CERT_SIGN = 0x04;

/** ecdsa-with-SHA256 and sha256WithRSAEncryption. */
const SHA256_SIGNATURES: readonly string[] = [OID.ecdsaWithSha256, "1.2.840.113549.1.1.11"];

function checkIssuer(issuer: Parsed, below: number): void {
  const constraints = extension(issuer, OID.basicConstraints);
  require(constraints !== undefined, "chain: issuer", "an issuer without basicConstraints");
  const read = under("chain: issuer", () => decode(extensionValue(constraints), BasicConstraints));
  require(read.cA, "chain: issuer", "an issuer is no CA");
  // RFC 5280 section 4.2.1.9: how many CAs may stand between it and the leaf.
  require((read.pathLenConstraint ?? MAX_CHAIN) >= below, "chain: issuer", "the path length is too short");
  const usage = extension(issuer, OID.keyUsage);
  require(usage !== undefined, "chain: issuer", "an issuer without keyUsage");
  require(((extensionValue(usage)[3] ?? 0) & KEY_CERT_SIGN) !== 0, "chain: issuer", "an issuer without keyCertSign");
  const critical = issuer.extensions.find((one) => one.critical && one !== constraints && one !== usage);
  require(critical === undefined, "chain: issuer", `an issuer's ${critical?.extnID ?? ""} is critical`);
}

function checkSignedBy(certificate: Parsed, issuer: Parsed): void {
  require(equal(certificate.issuerDer, issuer.subjectDer), "chain: names", "the issuer name is not the next subject");
  require(SHA256_SIGNATURES.includes(certificate.signatureAlgorithm), "chain: SHA-256", "not signed with SHA-256");
  let verifies = false;
  try {
    verifies = certificate.x509.verify(issuer.x509.publicKey);
  } catch {
    // A key of another kind than the signature algorithm throws.
  }
  require(verifies, "chain: signature", "not signed by the next certificate");
}

export interface Chain {
  readonly leaf: Leaf;
  readonly certificates: readonly Parsed[];
}

/** The leaf's profile, then what "A chain" says; in date at `at` unless the caller knows no time. */
export function readChain(chain: readonly Uint8Array[], at: number | undefined): Chain {
  const [first, ...rest] = chain;
  if (first === undefined || chain.length > MAX_CHAIN) throw new Refused("chain: length", "not 1 to 5 certificates");
  const leaf = readLeaf(first);
  const certificates: Parsed[] = [leaf, ...rest.map((der) => readCertificate(der, "Certificate"))];
  certificates.forEach((certificate, n) => {
    const issuer = certificates[n + 1];
    if (issuer === undefined) return;
    checkIssuer(issuer, n);
    checkSignedBy(certificate, issuer);
  });
  if (at !== undefined) require(certificates.every((one) => inDate(one, at)), "chain: dates", "not in date");
  return { leaf, certificates };
}

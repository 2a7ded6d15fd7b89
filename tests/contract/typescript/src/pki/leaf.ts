import { BasicConstraints, ExtendedKeyUsage, SubjectAlternativeName, type GeneralName, type OtherName } from "@peculiar/asn1-x509";
import { extension, extensionValue, readCertificate, type Parsed } from "./certificate.js";
import { fromUtf8, hex } from "./bytes.js";
import { decode, OID, toBytes } from "./der.js";
import { readPublicKey, type PublicKey } from "./keys.js";
import { isRole, readSpiffeId, type Role, type SpiffeId } from "./names.js";
import { Refused, require, under } from "./refused.js";

const HOUR_MS = 3_600_000;
const AK_TEXT = /^urn:bc:tpm-ak:[0-9a-f]{68}$/;
/** BIT STRING of one bit, digitalSignature (RFC 5280 section 4.2.1.3), in the one DER encoding. */
const DIGITAL_SIGNATURE_ALONE = "03020780";

export interface Leaf extends Parsed {
  readonly id: SpiffeId;
  readonly role: Role;
  readonly key: PublicKey;
  readonly attestationKey: string | undefined;
}

function attributeText(leaf: Parsed, at: number, type: string, row: string): string {
  const rdn = leaf.subject[at];
  const attribute = rdn?.[0];
  require(rdn?.length === 1 && attribute?.type === type, row, "not the RDN that stands in this place");
  return attribute.value.toString();
}

function readSubject(leaf: Parsed): { nodeId: string; role: Role } {
  require(leaf.subject.length === 2, "Subject", "not two RDNs");
  const nodeId = attributeText(leaf, 0, OID.commonName, "Subject");
  const [prefix, role = ""] = attributeText(leaf, 1, OID.organizationalUnit, "Subject").split("bc-role:", 2);
  require(prefix === "" && isRole(role), "Subject", "the OU is not bc-role: and a role");
  return { nodeId, role };
}

/** SEQUENCE { UTF8String } of a text below 128 bytes: tag, length, tag, length, text; the [0] around it is off already. */
function permanentIdentifier(name: OtherName): string {
  require(name.typeId === OID.permanentIdentifier, "Attestation key", "an otherName of another type");
  const explicit = toBytes(name.value);
  const [tag, length, innerTag, innerLength] = explicit;
  const text = under("Attestation key", () => fromUtf8(explicit.subarray(4)));
  require(
    tag === 0x30 && length === explicit.length - 2 && innerTag === 0x0c && innerLength === explicit.length - 4,
    "Attestation key",
    `not SEQUENCE { UTF8String }: ${hex(explicit)}`,
  );
  require(AK_TEXT.test(text), "Attestation key", "not urn:bc:tpm-ak: and 68 lower-case hex digits");
  return text;
}

function readNames(leaf: Parsed): { uri: string; attestationKey: string | undefined } {
  const row = "subjectAltName";
  const found = extension(leaf, OID.subjectAltName);
  require(found !== undefined, row, "absent");
  require(!found.critical, row, "critical");
  const names: GeneralName[] = [...under(row, () => decode(extensionValue(found), SubjectAlternativeName))];
  const uri = names[0]?.uniformResourceIdentifier;
  require(uri !== undefined, row, "the first name is no URI");
  require(names.length <= 2, row, "more than the SPIFFE ID and an attestation key");
  const second = names[1];
  if (second === undefined) return { uri, attestationKey: undefined };
  require(second.otherName !== undefined, row, "the second name is no otherName");
  return { uri, attestationKey: permanentIdentifier(second.otherName) };
}

function checkUsage(leaf: Parsed): void {
  const constraints = extension(leaf, OID.basicConstraints);
  require(constraints !== undefined, "basicConstraints", "absent");
  const read = under("basicConstraints", () => decode(extensionValue(constraints), BasicConstraints));
  require(!read.cA && read.pathLenConstraint === undefined, "basicConstraints", "CA:TRUE, or a path length");
  const usage = extension(leaf, OID.keyUsage);
  require(usage !== undefined, "keyUsage", "absent");
  require(usage.critical, "keyUsage", "not critical");
  require(hex(extensionValue(usage)) === DIGITAL_SIGNATURE_ALONE, "keyUsage", "not digitalSignature alone");
  const extended = extension(leaf, OID.extendedKeyUsage);
  require(extended !== undefined, "extendedKeyUsage", "absent");
  const purposes = [...under("extendedKeyUsage", () => decode(extensionValue(extended), ExtendedKeyUsage))].sort();
  const wanted = [OID.serverAuth, OID.clientAuth];
  require(purposes.join() === wanted.join(), "extendedKeyUsage", "not clientAuth and serverAuth alone");
}

function checkOtherExtensions(leaf: Parsed): void {
  const known: readonly string[] = [OID.subjectAltName, OID.basicConstraints, OID.keyUsage, OID.extendedKeyUsage];
  const critical = leaf.extensions.find((one) => one.critical && !known.includes(one.extnID));
  if (critical !== undefined) throw new Refused("Other extensions", `${critical.extnID} is critical`);
}

/** The table "The leaf", row by row; the row is the check. */
export function readLeaf(der: Uint8Array): Leaf {
  const leaf = readCertificate(der, "Certificate");
  const { nodeId, role } = readSubject(leaf);
  const { uri, attestationKey } = readNames(leaf);
  const id = under("subjectAltName", () => readSpiffeId(uri));
  checkUsage(leaf);
  checkOtherExtensions(leaf);
  const key = under("Key", () => readPublicKey(leaf.spki));
  require(leaf.signatureAlgorithm === OID.ecdsaWithSha256, "Signature", "not ECDSA with SHA-256");
  const lifetime = leaf.notAfter - leaf.notBefore;
  const most = (role === "ramdisk" ? 2 : 24) * HOUR_MS;
  require(lifetime > 0 && lifetime <= most, "Lifetime", `${lifetime / 1000} s`);
  require(nodeId === id.nodeId, "Names agree", "the CN is not the node id of the SPIFFE ID");
  return { ...leaf, id, role, key, attestationKey };
}

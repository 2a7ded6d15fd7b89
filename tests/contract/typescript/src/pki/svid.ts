import { X509Certificate } from "node:crypto";
import { execFileSync } from "node:child_process";
import { require } from "./refused.js";

const RULE = "X509-SVID";

/** The X.509-SVID standard's rules for a leaf, read with OpenSSL and nothing of this package's own readers:
 * exactly one URI SAN that is a SPIFFE ID with a path (sections 2 and 4), CA false (4.1), key usage present and critical
 * with digitalSignature and neither keyCertSign nor cRLSign (4.3), and extended key usage with both TLS purposes (4.4). */
export function checkSvid(der: Uint8Array): void {
  const certificate = new X509Certificate(der);
  const uris = (certificate.subjectAltName ?? "").split(", ").filter((one) => one.startsWith("URI:"));
  const [uri = ""] = uris;
  require(uris.length === 1, RULE, "not exactly one URI SAN");
  require(/^URI:spiffe:\/\/[a-z0-9._-]{1,255}(\/[a-zA-Z0-9._-]+)+$/.test(uri) && uri.length <= 4 + 2048, RULE, `${uri} is no SPIFFE ID of a workload`);
  const text = execFileSync("openssl", ["x509", "-inform", "DER", "-noout", "-ext", "keyUsage,extendedKeyUsage,basicConstraints"], {
    input: der, encoding: "utf8",
  });
  // Not certificate.ca: OpenSSL calls none a CA that may not sign certificates.
  require(!/CA:TRUE/.test(text), RULE, "CA true");
  require(/X509v3 Key Usage: critical\s*\n\s*Digital Signature\s*\n/.test(text), RULE, `key usage: ${text}`);
  require(!/Certificate Sign|CRL Sign/.test(text), RULE, "a leaf that signs");
  require(/TLS Web Server Authentication/.test(text) && /TLS Web Client Authentication/.test(text), RULE, `extended key usage: ${text}`);
}

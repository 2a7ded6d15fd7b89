import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  JoinResponseSchema, RenewResponseSchema, TrustBundleSchema, type SignedStatement,
} from "../pb/bc/identity/v1/statements_pb.js";
import { GeneralName } from "@peculiar/asn1-x509";
import { concat, fromHex, sha256 } from "../pki/bytes.js";
import { OID } from "../pki/der.js";
import { newKey, type PrivateKey } from "../pki/keys.js";
import * as make from "../pki/make.js";
import type { Role, SpiffeId } from "../pki/names.js";
import { signMessage } from "../pki/statement.js";
import { pem, pkcs8 } from "./pem.js";

const HOUR_MS = 3_600_000;
const SERVER_HOST = "127.0.0.1";

export interface Serving {
  readonly ca: PrivateKey;
  readonly caDer: Uint8Array;
  readonly key: string;
  readonly chain: string;
}

/** A serving CA and a server certificate under it, for 127.0.0.1. */
export function serving(): Serving {
  const ca = newKey();
  const key = newKey();
  const name = make.caName("typescript serving CA");
  const dates = { notBefore: new Date(Date.now() - HOUR_MS), notAfter: new Date(Date.now() + 24 * HOUR_MS) };
  const caDer = make.makeCertificate({ subject: name, issuer: name, spki: ca.spki, signer: ca, ...dates, extensions: make.caExtensions() });
  const der = make.makeCertificate({
    subject: make.caName("typescript control plane"), issuer: name, spki: key.spki, signer: ca, ...dates, serial: fromHex("02"),
    extensions: [make.altNames([new GeneralName({ iPAddress: SERVER_HOST })]), make.constraints(false), make.usage("03020780"), make.extendedUsage([OID.serverAuth])],
  });
  return { ca, caDer, key: pem("PRIVATE KEY", pkcs8(key)), chain: pem("CERTIFICATE", der) + pem("CERTIFICATE", caDer) };
}

/** The keys of a control plane in memory, and what it signs. */
export class Authority {
  readonly signing = newKey();
  readonly encryption = newKey();
  readonly ca = newKey();
  readonly serving = serving();
  readonly trustDomain = "ts.example";
  bundleVersion = 1n;
  /** How long a leaf lives; a test of renewal makes it short. */
  lifetimeMs = HOUR_MS;
  private serial = 0x1000;
  private readonly begun = Date.now();
  private readonly caName = make.caName("typescript node CA");
  private readonly root = newKey();
  /** Where a chain that a node presents to the gateway ends; no chain on the wire holds it. */
  readonly rootDer = this.authorityCertificate("typescript node root", "typescript node root", this.root.spki);
  readonly caDer = this.authorityCertificate("typescript node CA", "typescript node root", this.ca.spki);

  private authorityCertificate(subject: string, issuer: string, spki: Uint8Array): Uint8Array {
    return make.makeCertificate({
      subject: make.caName(subject), issuer: make.caName(issuer), spki, signer: this.root,
      notBefore: new Date(Date.now() - HOUR_MS), notAfter: new Date(Date.now() + 48 * HOUR_MS), extensions: make.caExtensions(),
    });
  }

  issue(spki: Uint8Array, id: SpiffeId, role: Role, parts: Partial<make.CertificateParts> = {}): Uint8Array {
    this.serial += 1;
    return make.makeCertificate({
      subject: make.leafSubject(id.nodeId, role), issuer: this.caName, spki, signer: this.ca,
      ...make.validity(new Date(), this.lifetimeMs), serial: concat(fromHex("01"), fromHex(this.serial.toString(16))),
      extensions: make.leafExtensions(id), ...parts,
    });
  }

  /** An equal version is equal bytes, so issued_at stays what it was. */
  bundle(): SignedStatement {
    const issuedAt = timestampFromMs(this.begun);
    const bundle = create(TrustBundleSchema, { trustDomain: this.trustDomain, version: this.bundleVersion, issuedAt });
    return signMessage("trust-bundle", TrustBundleSchema, bundle, this.signing);
  }

  joinResponse(csr: Uint8Array, leaf: Uint8Array): SignedStatement {
    const payload = { csrSha256: sha256(csr), chain: [leaf, this.caDer], trustBundle: this.bundle(), serverTime: timestampFromMs(Date.now()) };
    return signMessage("join-response", JoinResponseSchema, create(JoinResponseSchema, payload), this.signing);
  }

  renewResponse(csr: Uint8Array, leaf: Uint8Array): SignedStatement {
    const payload = { csrSha256: sha256(csr), chain: [leaf, this.caDer], trustBundle: this.bundle(), serverTime: timestampFromMs(Date.now()) };
    return signMessage("renew-response", RenewResponseSchema, create(RenewResponseSchema, payload), this.signing);
  }
}

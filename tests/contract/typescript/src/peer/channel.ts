import { connect, type DetailedPeerCertificate } from "node:tls";
import { X509Certificate } from "node:crypto";
import { Client, credentials } from "@grpc/grpc-js";
import { pinOf } from "../pki/keys.js";
import { Refused } from "../pki/refused.js";

/** gRPC tries again until its deadline; a connection on one machine that is taken is taken well before. */
const REFUSED_AFTER_MS = 1500;

export interface Handshake {
  readonly suite: string;
  readonly protocol: string | null;
  readonly alpn: string | false | null;
  readonly chain: readonly X509Certificate[];
}

export interface Identification {
  readonly cert: string;
  readonly key: string;
}

/** A handshake for the chain alone: nothing is sent over it, so that nothing is trusted yet does no harm. */
export function handshake(port: number, ciphers?: string, client?: Identification): Promise<Handshake> {
  const options = {
    host: "127.0.0.1", port, servername: "", rejectUnauthorized: false, ALPNProtocols: ["h2"], minVersion: "TLSv1.3" as const,
    ...(ciphers === undefined ? {} : { ciphers }), ...(client ?? {}),
  };
  return new Promise((resolve, reject) => {
    const socket = connect(options, () => {
      const chain: X509Certificate[] = [];
      let at: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
      while (at !== undefined && at.raw !== undefined && chain.length < 10) {
        chain.push(new X509Certificate(at.raw));
        // A self-issued certificate names itself as its issuer.
        at = at.issuerCertificate === at ? undefined : at.issuerCertificate;
      }
      const seen = { suite: socket.getCipher().name, protocol: socket.getProtocol(), alpn: socket.alpnProtocol, chain };
      socket.destroy();
      resolve(seen);
    });
    socket.on("error", reject);
  });
}

/** "Transport": the CA with the pin, CA:TRUE, self-issued, verified by its own key, in date. */
export function findServingCa(chain: readonly X509Certificate[], pins: readonly string[]): X509Certificate {
  const found = chain.find((one) => {
    const spki = new Uint8Array(one.publicKey.export({ format: "der", type: "spki" }));
    const inDate = Date.parse(one.validFrom) <= Date.now() && Date.now() < Date.parse(one.validTo);
    return pins.includes(pinOf(spki)) && one.ca && one.checkIssued(one) && one.verify(one.publicKey) && inDate;
  });
  if (found === undefined) throw new Refused("serving CA", "no certificate of the chain has the pin");
  return found;
}

/** A channel whose one root is `ca`; retries of gRPC's own and proxies from the environment are off. */
export function channel(port: number, ca: X509Certificate, client?: Identification): Client {
  const made = client === undefined
    ? credentials.createSsl(Buffer.from(ca.toString()))
    : credentials.createSsl(Buffer.from(ca.toString()), Buffer.from(client.key), Buffer.from(client.cert));
  return new Client(`127.0.0.1:${port}`, made, {
    "grpc.enable_retries": 0,
    "grpc.enable_http_proxy": 0,
    "grpc.max_receive_message_length": 1 << 20,
  });
}

/** Whether the connection is made at all: a server that asks for a certificate says no inside TLS. */
export function connects(port: number, ca: X509Certificate, client?: Identification): Promise<boolean> {
  const made = channel(port, ca, client);
  return new Promise((resolve) => {
    made.waitForReady(Date.now() + REFUSED_AFTER_MS, (error) => {
      made.close();
      resolve(error === undefined);
    });
  });
}

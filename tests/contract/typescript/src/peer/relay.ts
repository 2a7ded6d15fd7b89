import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** Cipher suites of TLS 1.3 (RFC 8446, appendix B.4). */
const SUITES: Readonly<Record<number, string>> = {
  0x1301: "TLS_AES_128_GCM_SHA256",
  0x1302: "TLS_AES_256_GCM_SHA384",
  0x1303: "TLS_CHACHA20_POLY1305_SHA256",
};

/** Record header 5, handshake header 4, legacy version 2, random 32, then the session id with its length, then the suite. */
function suiteOfServerHello(bytes: Buffer): string | undefined {
  const SERVER_HELLO = 2;
  if (bytes.length < 46 || bytes[0] !== 0x16 || bytes[5] !== SERVER_HELLO) return undefined;
  const at = 44 + (bytes[43] ?? 0);
  if (bytes.length < at + 2) return undefined;
  const suite = bytes.readUInt16BE(at);
  return SUITES[suite] ?? `0x${suite.toString(16)}`;
}

/** Hands bytes on between a client and a server on this machine, and notes the suite that each ServerHello names: it is in
 * the clear, so neither side has to be asked. */
export class Relay {
  readonly suites: string[] = [];
  private readonly sockets = new Set<Socket>();

  private constructor(private readonly server: Server, target: number) {
    server.on("connection", (client) => {
      const upstream = connect(target, "127.0.0.1");
      let seen = Buffer.alloc(0);
      const look = (data: Buffer): void => {
        seen = Buffer.concat([seen, data]);
        const suite = suiteOfServerHello(seen);
        if (suite === undefined && seen.length < 4096) return;
        if (suite !== undefined) this.suites.push(suite);
        upstream.off("data", look);
      };
      upstream.on("data", look);
      for (const [from, to] of [[client, upstream], [upstream, client]] as const) {
        this.sockets.add(from);
        from.on("error", () => to.destroy()).on("close", () => {
          this.sockets.delete(from);
          to.destroy();
        });
        from.pipe(to);
      }
    });
  }

  static async start(target: number): Promise<Relay> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new Relay(server, target);
  }

  get port(): number {
    return addressOf(this.server).port;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

function addressOf(server: Server): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("not listening on a port");
  return address;
}

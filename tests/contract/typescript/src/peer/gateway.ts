import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Server, ServerCredentials, status, type handleBidiStreamingCall, type handleUnaryCall, type ServerDuplexStream } from "@grpc/grpc-js";
import {
  Gateway as GatewayService, GatewayMessageSchema, RenewReplySchema,
  type GatewayMessage, type Hello, type NodeMessage, type RenewReply, type RenewRequest,
} from "../pb/bc/identity/v1/gateway_pb.js";
import type { SignedStatement } from "../pb/bc/identity/v1/statements_pb.js";
import { readLeaf, type Leaf } from "../pki/leaf.js";
import type { Authority } from "./authority.js";
import { pem } from "./pem.js";
import { definition } from "./rpc.js";
import { answering, asStatus, Status, withReason } from "./status.js";

type Stream = ServerDuplexStream<NodeMessage, GatewayMessage>;

/** One stream of a node, from its Hello on. */
export class Session {
  constructor(readonly leaf: Leaf, readonly hello: Hello, private readonly stream: Stream) {}

  welcome(bundle: SignedStatement): void {
    this.say({ case: "welcome", value: { serverTime: timestampFromMs(Date.now()), trustBundle: bundle } });
  }

  renewNow(reason: string): void {
    this.say({ case: "renewNow", value: { reason } });
  }

  newBundle(bundle: SignedStatement): void {
    this.say({ case: "trustBundle", value: bundle });
  }

  /** The notice, then the status. */
  revoke(reason: string): void {
    this.say({ case: "revoked", value: { reason, revokedAt: timestampFromMs(Date.now()) } });
    this.end(withReason(status.UNAUTHENTICATED, reason, "CERTIFICATE_REVOKED"));
  }

  end(how: Status): void {
    this.stream.emit("error", { code: how.code, details: how.text, metadata: how.metadata });
  }

  private say(message: Parameters<typeof gatewayMessage>[0]): void {
    this.stream.write(gatewayMessage(message));
  }
}

type Saying = NonNullable<Parameters<typeof create<typeof GatewayMessageSchema>>[1]>["message"];

function gatewayMessage(message: NonNullable<Saying>): GatewayMessage {
  return create(GatewayMessageSchema, { message });
}

export interface Answers {
  /** Called with each Hello; Welcome is the answerer's to give, and a Status it throws ends the session. */
  readonly session: (session: Session) => void;
  /** The statement to relay, or a Status thrown. */
  readonly renew: (request: RenewRequest, leaf: Leaf) => Promise<SignedStatement>;
}

function leafOf(call: { getAuthContext(): { sslPeerCertificate?: { raw: Buffer } | undefined } }): Leaf {
  const raw = call.getAuthContext().sslPeerCertificate?.raw;
  if (raw === undefined) throw new Status(status.PERMISSION_DENIED, "no client certificate");
  return readLeaf(Uint8Array.from(raw));
}

/** The gateway port in memory: TLS with certificates on both sides. */
export class Gateway {
  private readonly server = new Server({ "grpc.max_receive_message_length": 1 << 20 });
  port = 0;

  private constructor(answers: Answers) {
    const renew: handleUnaryCall<RenewRequest, RenewReply> = (call, reply) => {
      const answer = async (): Promise<RenewReply> => {
        const issued = await answers.renew(call.request, leafOf(call));
        return create(RenewReplySchema, { serverTime: timestampFromMs(Date.now()), issued });
      };
      answering(answer(), reply);
    };
    const session: handleBidiStreamingCall<NodeMessage, GatewayMessage> = (stream) => {
      let begun = false;
      stream.on("data", ({ message }: NodeMessage) => {
        if (begun || message.case !== "hello") return;
        begun = true;
        try {
          answers.session(new Session(leafOf(stream), message.value, stream));
        } catch (error) {
          const { code, text, metadata } = asStatus(error);
          stream.emit("error", { code, details: text, metadata });
        }
      });
      stream.on("end", () => stream.end());
      // A node that goes away is no error of the gateway's.
      stream.on("error", () => undefined);
    };
    const { method } = GatewayService;
    this.server.addService({ renew: definition(method.renew), session: definition(method.session) }, { renew, session });
  }

  static async start(authority: Authority, answers: Answers): Promise<Gateway> {
    const made = new Gateway(answers);
    const { key, chain } = authority.serving;
    const roots = Buffer.from(pem("CERTIFICATE", authority.rootDer));
    const credentials = ServerCredentials.createSsl(roots, [{ private_key: Buffer.from(key), cert_chain: Buffer.from(chain) }], true);
    made.port = await new Promise<number>((resolve, reject) => {
      made.server.bindAsync("127.0.0.1:0", credentials, (error, port) => (error === null ? resolve(port) : reject(error)));
    });
    return made;
  }

  stop(): void {
    this.server.forceShutdown();
  }
}

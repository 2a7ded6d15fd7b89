import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Metadata, Server, ServerCredentials, status, type handleUnaryCall } from "@grpc/grpc-js";
import { JoinReplySchema, JoinService, type JoinReply, type JoinRequest } from "../pb/bc/identity/v1/join_pb.js";
import type { SignedStatement } from "../pb/bc/identity/v1/statements_pb.js";
import { makeStatusDetails } from "../pki/refusal.js";
import type { Authority } from "./authority.js";
import { definition } from "./rpc.js";

const MAX_MESSAGE = 1 << 20;

/** An answer that is a status: the refusal, or anything else that a peer may say. */
export class Status extends Error {
  constructor(readonly code: status, readonly text: string, readonly metadata = new Metadata()) {
    super(text);
  }
}

export interface Refusal extends Status {
  readonly refusalId: string;
}

export function refusal(): Refusal {
  const refusalId = randomBytes(16).toString("hex");
  const metadata = new Metadata();
  metadata.set("refusal-id", refusalId);
  const info = { reason: "ACCESS_DENIED", domain: "bc.identity" };
  metadata.set("grpc-status-details-bin", Buffer.from(makeStatusDetails(info)));
  return Object.assign(new Status(status.PERMISSION_DENIED, "Join refused", metadata), { refusalId });
}

/** "Waits exactly N ms": a status of any code with the trailer. */
export function pushback(ms: number): Status {
  const metadata = new Metadata();
  metadata.set("grpc-retry-pushback-ms", `${ms}`);
  return new Status(status.UNAVAILABLE, "not now", metadata);
}

export const issued = (statement: SignedStatement): JoinReply =>
  create(JoinReplySchema, { serverTime: timestampFromMs(Date.now()), answer: { case: "issued", value: statement } });

export const pending = (id: string, retryAfterS: number): JoinReply =>
  create(JoinReplySchema, { serverTime: timestampFromMs(Date.now()), answer: { case: "pending", value: { id, retryAfterS } } });

export type Answer = (request: JoinRequest) => Promise<JoinReply>;

/** JoinService in memory, over TLS on a free port of this machine. */
export class JoinServer {
  readonly requests: JoinRequest[] = [];
  private readonly server = new Server({ "grpc.max_receive_message_length": MAX_MESSAGE });

  private constructor(private readonly answer: Answer) {
    const join: handleUnaryCall<JoinRequest, JoinReply> = (call, reply) => {
      this.requests.push(call.request);
      this.answer(call.request).then(
        (message) => reply(null, message),
        (error: unknown) => {
          if (error instanceof Status) reply({ code: error.code, details: error.text, metadata: error.metadata });
          else reply({ code: status.INTERNAL, details: String(error) });
        },
      );
    };
    this.server.addService({ join: definition(JoinService.method.join) }, { join });
  }

  private bound = 0;

  static async start(authority: Authority, answer: Answer): Promise<JoinServer> {
    const made = new JoinServer(answer);
    const { key, chain } = authority.serving;
    const credentials = ServerCredentials.createSsl(null, [{ private_key: Buffer.from(key), cert_chain: Buffer.from(chain) }], false);
    made.bound = await new Promise<number>((resolve, reject) => {
      made.server.bindAsync("127.0.0.1:0", credentials, (error, port) => (error === null ? resolve(port) : reject(error)));
    });
    return made;
  }

  get port(): number {
    return this.bound;
  }

  stop(): void {
    this.server.forceShutdown();
  }
}

import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Metadata, Server, ServerCredentials, status, type handleUnaryCall } from "@grpc/grpc-js";
import { JoinReplySchema, JoinService, type JoinReply, type JoinRequest } from "../pb/bc/identity/v1/join_pb.js";
import type { SignedStatement } from "../pb/bc/identity/v1/statements_pb.js";
import type { Authority } from "./authority.js";
import { definition } from "./rpc.js";
import { answering, Status, withReason } from "./status.js";

const MAX_MESSAGE = 1 << 20;

export interface Refusal extends Status {
  readonly refusalId: string;
}

export function refusal(): Refusal {
  const refusalId = randomBytes(16).toString("hex");
  const metadata = new Metadata();
  metadata.set("refusal-id", refusalId);
  return Object.assign(withReason(status.PERMISSION_DENIED, "Join refused", "ACCESS_DENIED", metadata), { refusalId });
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
      answering(this.answer(call.request), reply);
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

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Metadata, status, type Client, type ClientDuplexStream, type ServiceError } from "@grpc/grpc-js";
import {
  Gateway, NodeMessageSchema, RenewRequestSchema, type GatewayMessage, type NodeMessage, type RenewReply, type RenewRequest,
} from "../pb/bc/identity/v1/gateway_pb.js";
import { makeRequest } from "../pki/csr.js";
import { newKey, type PrivateKey } from "../pki/keys.js";
import { makeRenewPop } from "../pki/renewpop.js";
import { channel, findServingCa, handshake } from "./channel.js";
import { pem, pkcs8 } from "./pem.js";
import type { NodeFiles } from "./plane.js";
import { definition } from "./rpc.js";
import { reasonIn } from "./status.js";

const PATIENCE_MS = 20_000;

/** How a call ended. */
export interface End {
  readonly code: status;
  readonly text: string;
  /** ErrorInfo's reason, of this protocol's domain only. */
  readonly reason: string | undefined;
  readonly pushbackMs: number | undefined;
}

function pushback(metadata: Metadata): number | undefined {
  const [value] = metadata.get("grpc-retry-pushback-ms");
  return typeof value === "string" ? Number(value) : undefined;
}

const endOf = (error: Pick<ServiceError, "code" | "details" | "metadata">): End =>
  ({ code: error.code, text: error.details, reason: reasonIn(error), pushbackMs: pushback(error.metadata) });

/** A session from the node's side: what the gateway says, in order, then how it ended. */
export class NodeSession {
  private readonly messages: GatewayMessage["message"][] = [];
  private over: End | undefined;
  private wake: () => void = () => undefined;

  constructor(private readonly stream: ClientDuplexStream<NodeMessage, GatewayMessage>) {
    stream.on("data", ({ message }: GatewayMessage) => {
      this.messages.push(message);
      this.wake();
    });
    stream.on("status", (how) => {
      this.over = endOf({ code: how.code, details: how.details, metadata: how.metadata });
      this.wake();
    });
    // The status says the same, with its trailers.
    stream.on("error", () => undefined);
  }

  hello(journalId: string): void {
    const value = { journalId, bootId: "0f0e0d0c-0b0a-4908-8706-050403020100", daemonVersion: "typescript", nodeKey: "file" };
    this.stream.write(create(NodeMessageSchema, { message: { case: "hello", value: { $typeName: "bc.identity.v1.Hello", ...value } } }));
  }

  private async until<T>(found: () => T | undefined): Promise<T> {
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      const value = found();
      if (value !== undefined) return value;
      if (Date.now() > end) throw new Error("the gateway says nothing");
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 1000);
        this.wake = (): void => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** The next message; the end of the session in its place is an error. */
  async next(): Promise<GatewayMessage["message"]> {
    return this.until(() => {
      const message = this.messages.shift();
      if (message === undefined && this.over !== undefined) throw new Error(`ended: ${JSON.stringify(this.over)}`);
      return message;
    });
  }

  async ended(): Promise<End> {
    return this.until(() => this.over);
  }

  halfClose(): void {
    this.stream.end();
  }
}

/** A node as the gateway knows it: a chain and the leaf's key. */
export interface Held {
  readonly chain: readonly Uint8Array[];
  readonly key: PrivateKey;
}

export type RenewOutcome = { readonly reply: RenewReply } | { readonly end: End };

export class GatewayClient {
  private constructor(private readonly client: Client, readonly held: Held) {}

  static async open(files: NodeFiles, held: Held): Promise<GatewayClient> {
    const port = Number(files.values.get("gateway")?.split(":").at(-1));
    const identification = { cert: held.chain.map((one) => pem("CERTIFICATE", one)).join(""), key: pem("PRIVATE KEY", pkcs8(held.key)) };
    const { chain } = await handshake(port, "TLS_AES_256_GCM_SHA384", identification);
    return new GatewayClient(channel(port, findServingCa(chain, [files.values.get("serving_ca_spki_pin") ?? ""]), identification), held);
  }

  session(): NodeSession {
    const { path, requestSerialize, responseDeserialize } = definition(Gateway.method.session);
    return new NodeSession(this.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, new Metadata()));
  }

  request(next: PrivateKey = newKey(), parts: Partial<Omit<RenewRequest, "$typeName" | "$unknown">> = {}): RenewRequest {
    const csr = parts.csr ?? makeRequest(next);
    const [leaf = new Uint8Array()] = this.held.chain;
    const now = Date.now();
    return create(RenewRequestSchema, {
      csr, chain: [...this.held.chain], clientTime: timestampFromMs(now), renewPop: makeRenewPop(csr, leaf, this.held.key, now), ...parts,
    });
  }

  renew(request: RenewRequest): Promise<RenewOutcome> {
    const { path, requestSerialize, responseDeserialize } = definition(Gateway.method.renew);
    return new Promise((resolve) => {
      this.client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, new Metadata(), { deadline: Date.now() + PATIENCE_MS }, (error, reply) => {
        if (reply !== undefined) resolve({ reply });
        else if (error !== null) resolve({ end: endOf(error) });
      });
    });
  }

  close(): void {
    this.client.close();
  }
}

import { create } from "@bufbuild/protobuf";
import { Metadata, status, type Client, type ServiceError } from "@grpc/grpc-js";
import { JoinRequestSchema, JoinService, type JoinReply, type JoinRequest } from "../pb/bc/identity/v1/join_pb.js";
import { makeRequest } from "../pki/csr.js";
import { readRecipientJwk } from "../pki/jwk.js";
import { newKey, type PrivateKey } from "../pki/keys.js";
import { isFinal } from "../pki/refusal.js";
import { seal } from "../pki/seal.js";
import { channel, findServingCa, handshake, type Handshake } from "./channel.js";
import type { NodeFiles } from "./plane.js";
import { definition } from "./rpc.js";

const CALL_MS = 30_000;

export interface Refusal {
  readonly code: status;
  readonly text: string;
  readonly final: boolean;
  readonly refusalId: string | undefined;
  readonly details: Buffer | undefined;
}

export type Outcome = { readonly reply: JoinReply } | { readonly refusal: Refusal };

function first(metadata: Metadata, key: string): string | Buffer | undefined {
  return metadata.get(key)[0];
}

export function readRefusal(error: ServiceError): Refusal {
  const details = first(error.metadata, "grpc-status-details-bin");
  const id = first(error.metadata, "refusal-id");
  const bytes = Buffer.isBuffer(details) ? details : undefined;
  return {
    code: error.code,
    text: error.details,
    final: bytes !== undefined && isFinal(Uint8Array.from(bytes)),
    refusalId: typeof id === "string" ? id : undefined,
    details: bytes,
  };
}

type Parts = Partial<Omit<JoinRequest, "$typeName" | "$unknown">>;

/** A node that joins, from what an operator was given for it. */
export class JoinClient {
  private constructor(private readonly client: Client, private readonly files: NodeFiles, readonly handshake: Handshake) {}

  static async open(files: NodeFiles): Promise<JoinClient> {
    const port = Number(files.values.get("join")?.split(":").at(-1));
    const seen = await handshake(port);
    const ca = findServingCa(seen.chain, [files.values.get("serving_ca_spki_pin") ?? ""]);
    return new JoinClient(channel(port, ca), files, seen);
  }

  get signingPins(): string[] {
    return [this.files.values.get("join_signing_key_pin") ?? ""];
  }

  request(token: string, parts: Parts = {}, key: PrivateKey = newKey()): Promise<JoinRequest> {
    return this.requestFor(makeRequest(key), token, parts);
  }

  async requestFor(csr: Uint8Array, token: string, parts: Parts = {}): Promise<JoinRequest> {
    const recipient = readRecipientJwk(this.files.jwk, [this.files.values.get("join_encryption_key_pin") ?? ""]);
    return create(JoinRequestSchema, {
      attestor: "join-token", csr, role: "node", daemonVersion: "typescript", claims: { hostname: "typescript" },
      sealedToken: { kid: recipient.kid, sealed: await seal(token, csr, recipient) },
      ...parts,
    });
  }

  call(request: JoinRequest): Promise<Outcome> {
    const { path, requestSerialize, responseDeserialize } = definition(JoinService.method.join);
    return new Promise((resolve) => {
      const options = { deadline: Date.now() + CALL_MS };
      this.client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, new Metadata(), options, (error, reply) => {
        if (reply !== undefined) resolve({ reply });
        else if (error !== null) resolve({ refusal: readRefusal(error) });
      });
    });
  }

  close(): void {
    this.client.close();
  }
}

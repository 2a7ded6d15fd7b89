import { Metadata, status, type sendUnaryData, type ServiceError } from "@grpc/grpc-js";
import { makeStatusDetails, reasonOf } from "../pki/refusal.js";

const DETAILS = "grpc-status-details-bin";

/** An answer that is a status: the refusal, or anything else that a peer may say. */
export class Status extends Error {
  constructor(readonly code: status, readonly text: string, readonly metadata = new Metadata()) {
    super(text);
  }
}

export function withReason(code: status, text: string, reason: string, metadata = new Metadata()): Status {
  metadata.set(DETAILS, Buffer.from(makeStatusDetails({ reason, domain: "bc.identity" }, code, text)));
  return new Status(code, text, metadata);
}

/** An error that is no Status is a fault of the peer here: the other side sees INTERNAL with its text. */
export function asStatus(error: unknown): Status {
  return error instanceof Status ? error : new Status(status.INTERNAL, String(error));
}

export function answering<T>(answer: Promise<T>, reply: sendUnaryData<T>): void {
  answer.then(
    (message) => reply(null, message),
    (error: unknown) => {
      const { code, text, metadata } = asStatus(error);
      reply({ code, details: text, metadata });
    },
  );
}

export function detailsOf(metadata: Metadata): Buffer | undefined {
  const [value] = metadata.get(DETAILS);
  return Buffer.isBuffer(value) ? value : undefined;
}

export function reasonIn(error: Pick<ServiceError, "metadata">): string | undefined {
  const details = detailsOf(error.metadata);
  return details === undefined ? undefined : reasonOf(Uint8Array.from(details));
}

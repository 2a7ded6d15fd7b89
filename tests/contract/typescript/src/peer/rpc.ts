import type { DescMethodUnary, DescMethodBiDiStreaming } from "@bufbuild/protobuf";
import { toBinary, type MessageShape } from "@bufbuild/protobuf";
import type { MethodDefinition } from "@grpc/grpc-js";
import { readMessage } from "../pki/wire.js";

type Method = DescMethodUnary | DescMethodBiDiStreaming;
export type Definition<M extends Method> = MethodDefinition<MessageShape<M["input"]>, MessageShape<M["output"]>>;

/** What @grpc/grpc-js wants to know of a method, from the descriptor that the proto files give. */
export function definition<M extends Method>(method: M): Definition<M> {
  const streams = method.methodKind === "bidi_streaming";
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: streams,
    responseStream: streams,
    requestSerialize: (message: MessageShape<M["input"]>) => Buffer.from(toBinary<M["input"]>(method.input, message)),
    requestDeserialize: (bytes) => readMessage<M["input"]>(method.input, Uint8Array.from(bytes)),
    responseSerialize: (message: MessageShape<M["output"]>) => Buffer.from(toBinary<M["output"]>(method.output, message)),
    responseDeserialize: (bytes) => readMessage<M["output"]>(method.output, Uint8Array.from(bytes)),
  };
}

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { AnySchema } from "@bufbuild/protobuf/wkt";

/** google.rpc.Status { code = 1, message = 2, details = 3 } and google.rpc.ErrorInfo { reason = 1, domain = 2 }, read and
 * written field by field: two messages are no reason for one more package. */
const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";
const PERMISSION_DENIED = 7;

export interface ErrorInfo {
  readonly reason: string;
  readonly domain: string;
}

export function makeStatusDetails(info: ErrorInfo, code = PERMISSION_DENIED, message = "Join refused"): Uint8Array {
  const value = new BinaryWriter();
  value.tag(1, WireType.LengthDelimited).string(info.reason);
  value.tag(2, WireType.LengthDelimited).string(info.domain);
  const any = toBinary(AnySchema, create(AnySchema, { typeUrl: ERROR_INFO, value: value.finish() }));
  const status = new BinaryWriter();
  status.tag(1, WireType.Varint).int32(code);
  status.tag(2, WireType.LengthDelimited).string(message);
  status.tag(3, WireType.LengthDelimited).bytes(any);
  return status.finish();
}

function readErrorInfo(data: Uint8Array): ErrorInfo {
  const reader = new BinaryReader(data);
  let reason = "";
  let domain = "";
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    if (field === 1 && wire === WireType.LengthDelimited) reason = reader.string();
    else if (field === 2 && wire === WireType.LengthDelimited) domain = reader.string();
    else reader.skip(wire, field);
  }
  return { reason, domain };
}

function errorInfos(details: Uint8Array): ErrorInfo[] {
  const reader = new BinaryReader(details);
  const found: ErrorInfo[] = [];
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    if (field !== 3 || wire !== WireType.LengthDelimited) {
      reader.skip(wire, field);
      continue;
    }
    const any = fromBinary(AnySchema, reader.bytes());
    if (any.typeUrl.endsWith("/google.rpc.ErrorInfo")) found.push(readErrorInfo(any.value));
  }
  return found;
}

/** The reason of this protocol's domain. Details that cannot be read hold none. */
export function reasonOf(details: Uint8Array): string | undefined {
  try {
    return errorInfos(details).find((one) => one.domain === "bc.identity")?.reason;
  } catch {
    return undefined;
  }
}

/** Whether a node that gets these details in answer to Join is refused for good. */
export function isFinal(details: Uint8Array): boolean {
  return reasonOf(details) === "ACCESS_DENIED";
}

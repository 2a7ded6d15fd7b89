import { fromBinary, ScalarType, type DescField, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** The wire type of a field of these protos: no floats, no packed lists, no maps. */
function wireType(field: DescField): WireType {
  if (field.fieldKind === "scalar" && field.scalar !== ScalarType.STRING && field.scalar !== ScalarType.BYTES) return WireType.Varint;
  return WireType.LengthDelimited;
}

/** The library reads a known field whatever its wire type says, so one flipped bit of a tag would change nothing. Such
 * a message was written by no serializer of these protos. */
function checkWireTypes(schema: DescMessage, bytes: Uint8Array): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wire] = reader.tag();
    const field = schema.fields.find((one) => one.number === number);
    if (field === undefined) {
      reader.skip(wire, number);
      continue;
    }
    if (wire !== wireType(field)) throw new Error(`field ${field.name} with wire type ${wire}`);
    if (field.message === undefined) reader.skip(wire, number);
    else checkWireTypes(field.message, reader.bytes());
  }
}

export function readMessage<D extends DescMessage>(schema: D, bytes: Uint8Array): MessageShape<D> {
  checkWireTypes(schema, bytes);
  return fromBinary(schema, bytes);
}

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { require, type Check } from "./refused.js";

/** google.protobuf.Timestamp: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z. */
const MIN_SECONDS = -62135596800n;
const MAX_SECONDS = 253402300799n;

/** Milliseconds since 1970, whole seconds exact. What is below a millisecond counts too: certificates end at whole
 * seconds, so a fraction cannot be lost in "T < notAfter" when it is rounded down. */
export function readTimestamp(time: Timestamp | undefined, check: Check, field: string): number {
  require(time !== undefined, check, `no ${field}`);
  require(time.seconds >= MIN_SECONDS && time.seconds <= MAX_SECONDS, check, `${field}: seconds out of range`);
  require(time.nanos >= 0 && time.nanos <= 999_999_999, check, `${field}: nanos out of range`);
  return Number(time.seconds) * 1000 + Math.floor(time.nanos / 1_000_000);
}

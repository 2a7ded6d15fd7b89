import { fromUtf8 } from "./bytes.js";
import { Refused } from "./refused.js";

const TOKEN = /^[A-Za-z0-9._~+/=-]{16,4096}$/;
const OWN_TOKEN = /^bcjt_[a-z2-7]{10}_[A-Za-z0-9_-]{43}$/;

/** The token in what a file or standard input held: one line end may follow, nothing else may stand around it. The
 * refusal shows nothing of it. */
export function readToken(data: Uint8Array): string {
  let text: string;
  try {
    text = fromUtf8(data);
  } catch {
    throw new Refused("token", "not a join token");
  }
  const token = text.replace(/\r?\n$/, "");
  if (!TOKEN.test(token)) throw new Refused("token", "not a join token");
  return token;
}

/** The shape of the tokens that a control plane of this project makes. */
export function isOwnToken(token: string): boolean {
  return OWN_TOKEN.test(token);
}

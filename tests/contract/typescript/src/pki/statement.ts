import { create, toBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { SignedStatementSchema, type SignedStatement } from "../pb/bc/identity/v1/statements_pb.js";
import { concat, utf8 } from "./bytes.js";
import { readPublicKey, pinOf, signP1363, verifyP1363, type PrivateKey, type PublicKey } from "./keys.js";
import { Refused, require, under, type Check } from "./refused.js";
import { readMessage } from "./wire.js";

export const MAX_STATEMENT = 1024 * 1024;

export type Purpose = "join-response" | "trust-bundle" | "renew-response" | "renew-pop";

/** The names of the three checks, and of what comes before them: callers give the page's numbers. */
export interface StatementChecks {
  readonly form: Check;
  readonly pin: Check;
  readonly kid: Check;
  readonly signature: Check;
}

export const STATEMENT_CHECKS: StatementChecks = { form: "statement", pin: "pin", kid: "kid", signature: "signature" };

export function toBeSigned(purpose: string, payload: Uint8Array): Uint8Array {
  const zero = new Uint8Array(1);
  return concat(utf8("bc-statement-v1"), zero, utf8(purpose), zero, payload);
}

export function signStatement(purpose: Purpose, payload: Uint8Array, key: PrivateKey): SignedStatement {
  return create(SignedStatementSchema, {
    purpose,
    payload,
    kid: key.kid,
    signature: signP1363(key, toBeSigned(purpose, payload)),
    signerSpki: key.spki,
  });
}

export function signMessage<D extends DescMessage>(purpose: Purpose, schema: D, message: MessageShape<D>, key: PrivateKey): SignedStatement {
  return signStatement(purpose, toBinary(schema, message), key);
}

export function readStatement(bytes: Uint8Array, check: Check): SignedStatement {
  require(bytes.length <= MAX_STATEMENT, check, "a statement of more than 1 MiB");
  return under(check, () => readMessage(SignedStatementSchema, bytes));
}

export interface Verified {
  readonly payload: Uint8Array;
  readonly signer: PublicKey;
}

/** `purpose` is what the caller expects; the field of that name is not looked at. */
export function verifyStatement(
  statement: SignedStatement,
  purpose: Purpose,
  pins: readonly string[],
  checks: StatementChecks = STATEMENT_CHECKS,
): Verified {
  const pin = pinOf(statement.signerSpki);
  require(pins.includes(pin), checks.pin, `the signer's pin is ${pin}`);
  const signer = under(checks.pin, () => readPublicKey(statement.signerSpki));
  require(statement.kid === signer.kid, checks.kid, "kid is not the thumbprint of the signer's key");
  if (!verifyP1363(signer, toBeSigned(purpose, statement.payload), statement.signature)) {
    throw new Refused(checks.signature, `the signature is not one for purpose ${purpose}`);
  }
  return { payload: statement.payload, signer };
}

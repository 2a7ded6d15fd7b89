import type { TpmEvidence } from "../pb/bc/identity/v1/attestation_pb.js";
import type { ChallengeAnswer, JoinChallenge } from "../pb/bc/identity/v1/join_pb.js";
import { concat, equal, hex, sha256 } from "../pki/bytes.js";
import { readRequest } from "../pki/csr.js";
import { require, under } from "../pki/refused.js";
import { readTimestamp } from "../pki/time.js";
import type { Area } from "./area.js";
import { readQuote, type Quote, type Selection } from "./attest.js";
import { checkCertification, signedBy } from "./certify.js";
import { ATTEST, digestLength, GENERATED } from "./constants.js";
import { judgeEvidence, type Lists } from "./evidence.js";

const MAX_ATTEST = 1024;

/** A challenge that a control plane gave, with what it keeps of it. */
export interface Given {
  readonly challenge: JoinChallenge;
  readonly secret: Uint8Array;
  /** SHA-256 of the request it was for. */
  readonly csrSha256: Uint8Array;
  readonly attestationKeyName: Uint8Array;
}

export interface Round {
  readonly csr: Uint8Array;
  readonly evidence: TpmEvidence | undefined;
  readonly answer: ChallengeAnswer;
}

/** The table ChallengeAnswer; what has one length only fails at its own check. */
export function checkAnswerBounds(answer: ChallengeAnswer): void {
  const row = "challenge_answer";
  const attests = [answer.quote, answer.certification].map((one) => one?.attest.length ?? 0);
  require(attests.every((length) => length <= MAX_ATTEST), row, "an attest of more than 1024 bytes");
  require(answer.pcrValues.length <= 24 && answer.pcrValues.every((one) => one.length <= 64), row, "PCR values out of their bounds");
}

export interface Proved {
  readonly quote: Quote;
  /** What the leaf names; undefined for a machine whose key is a file. */
  readonly attestationKey: string | undefined;
}

export const attestationKeyText = (area: Area): string => `urn:bc:tpm-ak:${hex(area.name)}`;

const bitsOf = (bits: Uint8Array): number => [...bits].reduce((sum, byte) => sum + byte.toString(2).replaceAll("0", "").length, 0);

function checkQuote({ answer }: Round, { challenge }: Given, attestationKey: Area): Quote {
  const asked: Selection = { bank: challenge.tpm?.pcrBank ?? 0, bits: challenge.tpm?.pcrSelection ?? new Uint8Array() };
  const told = answer.quote;
  require(signedBy(attestationKey, told), 9, "the quote is not signed by the attestation key");
  const quote = under(10, () => readQuote(told.attest));
  require(quote.magic === GENERATED, 11, "another magic");
  require(quote.type === ATTEST.quote, 12, "another type");
  require(equal(quote.extraData, challenge.tpm?.nonce ?? new Uint8Array()), 13, "another nonce");
  const [selection] = quote.selections;
  require(quote.selections.length === 1 && selection?.bank === asked.bank && equal(selection.bits, asked.bits), 14, "another selection");
  const length = digestLength(asked.bank);
  const values = answer.pcrValues;
  require(values.length === bitsOf(asked.bits) && values.every((one) => one.length === length), 15, "not a value for each selected PCR");
  require(equal(quote.digest, sha256(concat(...values))), 15, "the digest of other values");
  return quote;
}

/** Checks 1 to 24, `now` in milliseconds since 1970. */
export function judgeAnswer(round: Round, given: Given, lists: Lists, now: number): Proved {
  const { answer, csr } = round;
  const { challenge } = given;
  const { endorsementKey, attestationKey, nodeKey } = judgeEvidence(round.evidence, lists);
  require(answer.id === challenge.id, 5, "no challenge of this id");
  const forThem = equal(given.csrSha256, sha256(csr)) && equal(challenge.tpm?.ekName ?? new Uint8Array(), endorsementKey.name);
  require(forThem && equal(given.attestationKeyName, attestationKey.name), 6, "the challenge was for another request or key");
  require(now < readTimestamp(challenge.notAfter, 7, "not_after"), 7, "the challenge is over");
  require(equal(answer.secret, given.secret), 8, "another secret");
  const quote = checkQuote(round, given, attestationKey);
  require((answer.certification !== undefined) === (nodeKey !== undefined), 16, "a certification without a key, or a key without");
  if (nodeKey === undefined) return { quote, attestationKey: undefined };
  checkCertification(answer.certification, attestationKey, nodeKey, csr, readRequest(csr));
  return { quote, attestationKey: attestationKeyText(attestationKey) };
}

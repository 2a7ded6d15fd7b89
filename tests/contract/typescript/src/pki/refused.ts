/** A check of docs/protocol.md: its number where the page numbers it, else the name of its row or rule. */
export type Check = number | string;

/** What a verifier says instead of an answer. `check` is the outermost check, `row` the one inside it that failed. */
export class Refused extends Error {
  readonly check: Check;
  readonly row: Check;

  constructor(check: Check, why: string, row: Check = check) {
    super(`check ${check}: ${why}`);
    this.name = "Refused";
    this.check = check;
    this.row = row;
  }
}

export function require(holds: boolean, check: Check, why: string): asserts holds {
  if (!holds) throw new Refused(check, why);
}

/** Runs `inner`; what it refuses is refused under `check`, and stays visible as the row. Other errors are refusals too:
 * parsers of the libraries throw their own. */
export function under<T>(check: Check, inner: () => T): T {
  try {
    return inner();
  } catch (error) {
    if (error instanceof Refused) throw new Refused(check, error.message, error.row);
    throw new Refused(check, error instanceof Error ? error.message : String(error));
  }
}

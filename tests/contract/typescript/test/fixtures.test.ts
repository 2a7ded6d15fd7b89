import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fixtureFiles } from "../src/fixtures/all.js";
import { disagreement, readFolder } from "../src/fixtures/check.js";
import { FROM_PYTHON, FROM_TYPESCRIPT } from "../src/fixtures/places.js";

test("the fixtures that are checked in are those that npm run fixtures makes", async () => {
  const made = await fixtureFiles();
  assert.deepEqual(readdirSync(FROM_TYPESCRIPT).sort(), [...made.keys()].sort());
  for (const [name, text] of made) assert.equal(readFileSync(join(FROM_TYPESCRIPT, name), "utf8"), text, name);
});

test("every fixture of this side is read or refused as it says, by the check it names", async () => {
  const fixtures = readFolder(FROM_TYPESCRIPT);
  for (const fixture of fixtures) assert.equal(await disagreement(fixture), undefined, `${fixture.kind} / ${fixture.name}`);
  assert.ok(fixtures.filter((one) => one.expect !== "ok").length >= 40);
});

test("no two fixtures of a kind have one name", () => {
  const names = readFolder(FROM_TYPESCRIPT).map((one) => `${one.kind} / ${one.name}`);
  assert.deepEqual(names, [...new Set(names)]);
});

const numbered = [["join-response", 11], ["renew-response", 12], ["tpm-evidence", 4], ["tpm-answer", 24]] as const;
for (const [kind, checks] of numbered) {
  test(`each of the ${checks} checks of a ${kind} refuses at least one fixture`, () => {
    const refused = readFolder(FROM_TYPESCRIPT).flatMap((one) => (one.kind === kind && one.expect !== "ok" ? [one.expect.check] : []));
    for (let check = 1; check <= checks; check += 1) assert.ok(refused.includes(check), `check ${check}`);
  });
}

const fromPython = existsSync(FROM_PYTHON);
test("every fixture of the Python side is read or refused as it says", { skip: !fromPython && "there are none yet" }, async () => {
  const fixtures = readFolder(FROM_PYTHON);
  const wrong: string[] = [];
  for (const fixture of fixtures) {
    const what = await disagreement(fixture);
    if (what !== undefined) wrong.push(`${fixture.kind} / ${fixture.name}: ${what}`);
  }
  assert.deepEqual(wrong, []);
  assert.ok(fixtures.length > 0);
});

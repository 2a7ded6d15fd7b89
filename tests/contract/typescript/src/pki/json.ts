/** JSON as "Files" wants it: one object, no name twice. JSON.parse keeps the last of two equal names, so names are
 * counted by a second look at the text: a scan of its strings, told apart from values by the colon after them. */
export function parseStrict(text: string): ReadonlyMap<string, unknown> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("not an object");
  const seen: Set<string>[] = [];
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}]/g)) {
    if (token === "{") seen.push(new Set());
    else if (token === "}") seen.pop();
    else if (token.endsWith(":")) {
      const name: unknown = JSON.parse(token.slice(0, token.lastIndexOf('"') + 1));
      const names = seen.at(-1);
      if (typeof name !== "string" || names === undefined || names.has(name)) throw new Error("a name twice");
      names.add(name);
    }
  }
  return new Map(Object.entries(value));
}

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { runOk, start, type Running } from "./command.js";

export interface NodeFiles {
  readonly values: ReadonlyMap<string, string>;
  readonly jwk: Uint8Array;
  readonly servingCa: string;
}

/** config.toml of node-config: one `name = "text"` a line. No more of TOML is written there. */
function readConfig(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const [, name = "", value = ""] of text.matchAll(/^(\w+) = "([^"]*)"$/gm)) values.set(name, value);
  return values;
}

/** The Python control plane in a directory of its own, served until `stop`. */
export class Plane {
  private constructor(private readonly dir: string, private readonly server: Running) {}

  static async start(folder: string, trustDomain: string, ...more: string[]): Promise<Plane> {
    const dir = join(folder, "plane");
    await runOk("bcd-controlplane", ["init", "--dir", dir, "--trust-domain", trustDomain, "--host", "127.0.0.1", ...more]);
    const server = start("bcd-controlplane", ["serve", "--dir", dir, "--join", "127.0.0.1:0", "--gateway", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    await server.says(/^ready\b/m);
    while (!existsSync(join(dir, "endpoints.json"))) await wait(20);
    return new Plane(dir, server);
  }

  /** Where `serve` listens, as it writes it down for people and machines. */
  port(name: string): number {
    const ends: unknown = JSON.parse(readFileSync(join(this.dir, "endpoints.json"), "utf8"));
    const found: unknown = typeof ends === "object" && ends !== null ? new Map<string, unknown>(Object.entries(ends)).get(name) : undefined;
    if (typeof found !== "string") throw new Error(`no ${name} in endpoints.json`);
    return Number(found.split(":").at(-1));
  }

  /** A command of the operator; `--dir` stands where the command wants it. */
  async does(command: readonly string[], ...args: string[]): Promise<string> {
    return runOk("bcd-controlplane", [...command, "--dir", this.dir, ...args]);
  }

  async token(...args: string[]): Promise<string> {
    return (await this.does(["token", "create"], "--site", "lab", ...args)).trim();
  }

  async nodeFiles(folder: string): Promise<NodeFiles> {
    const out = join(folder, "etc");
    await this.does(["node-config"], "--out", out, "--data-dir", join(folder, "data"));
    return {
      values: readConfig(readFileSync(join(out, "config.toml"), "utf8")),
      jwk: new Uint8Array(readFileSync(join(out, "join-encryption.jwk"))),
      servingCa: readFileSync(join(out, "serving-ca.pem"), "utf8"),
    };
  }

  async stop(): Promise<void> {
    await this.server.stop();
  }
}

import { spawn, type ChildProcess } from "node:child_process";
import { BIN } from "../fixtures/places.js";

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process that does not say what it is waited for is killed, and the wait ends with what it did say. */
const PATIENCE_MS = 30_000;

export class Running {
  stdout = "";
  stderr = "";
  readonly ended: Promise<Ended>;
  private readonly changed = new Set<() => void>();

  constructor(readonly process: ChildProcess) {
    process.stdout?.setEncoding("utf8").on("data", (text: string) => this.add("stdout", text));
    process.stderr?.setEncoding("utf8").on("data", (text: string) => this.add("stderr", text));
    this.ended = new Promise((resolve, reject) => {
      process.on("error", reject);
      process.on("close", (status) => {
        resolve({ status, stdout: this.stdout, stderr: this.stderr });
        this.wake();
      });
    });
  }

  private add(stream: "stdout" | "stderr", text: string): void {
    this[stream] += text;
    this.wake();
  }

  private wake(): void {
    for (const one of [...this.changed]) one();
  }

  /** Waits until what the process said matches; an end before that is an error that shows all of it. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    const patience = setTimeout(() => this.process.kill("SIGKILL"), PATIENCE_MS);
    try {
      return await this.match(pattern);
    } finally {
      clearTimeout(patience);
    }
  }

  private async match(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(`${this.stdout}\n${this.stderr}`);
      if (match !== null) return match;
      if (this.process.exitCode !== null || this.process.signalCode !== null) {
        throw new Error(`ended without ${String(pattern)}: ${this.stdout}${this.stderr}`);
      }
      await new Promise<void>((resolve) => {
        const once = (): void => {
          this.changed.delete(once);
          resolve();
        };
        this.changed.add(once);
      });
    }
  }

  async stop(): Promise<Ended> {
    if (this.process.exitCode === null) this.process.kill("SIGTERM");
    // A process that does not end by itself must not outlive the test.
    const hard = setTimeout(() => this.process.kill("SIGKILL"), 15_000);
    const ended = await this.ended;
    clearTimeout(hard);
    return ended;
  }
}

/** Starts a command of the Python side. Nothing of this process's environment but the path and a locale reaches it. */
export function start(command: string, args: readonly string[], input?: string): Running {
  const child = spawn(`${BIN}/${command}`, args, {
    stdio: ["pipe", "pipe", "pipe"],
    env: { PATH: process.env["PATH"] ?? "", LC_ALL: "C.UTF-8" },
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(input ?? "");
  return new Running(child);
}

export async function run(command: string, args: readonly string[], input?: string): Promise<Ended> {
  return start(command, args, input).ended;
}

export async function runOk(command: string, args: readonly string[], input?: string): Promise<string> {
  const { status, stdout, stderr } = await run(command, args, input);
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${status}\n${stdout}${stderr}`);
  return stdout;
}

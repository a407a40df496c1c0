import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, inject, it } from "vitest";
import { peers, type Environments } from "./environments.ts";

/** A peer's report on a step, as a line of JSON. */
export interface Said {
  readonly step: string;
  readonly result?: unknown;
  /** The name of the error. */
  readonly error?: string;
  /** The message of the error. */
  readonly text?: string;
}

/** A program in another language. */
export interface PeerProgram {
  /** Its name in test titles. */
  readonly name: string;
  readonly environment: keyof Environments;
  /** A script of `peers/python` or `peers/node`, or a folder of `peers/go`. */
  readonly program: string;
}

const trace = process.env["INTEROP_TRACE"];
const traced = trace === undefined ? {} : { INTEROP_TRACE: trace };
/** Only the variables that programs need to start: no settings of this machine, and no proxies. */
const env = { PATH: process.env["PATH"] ?? "", HOME: tmpdir(), PYTHONDONTWRITEBYTECODE: "1", ...traced };

interface Settings {
  readonly env?: NodeJS.ProcessEnv;
  /** Whether to discard its log. */
  readonly quiet?: boolean;
}

function start({ environment, program }: PeerProgram, args: readonly string[], settings: Settings = {}): ChildProcess {
  const made = inject("environments")[environment];
  if ("missing" in made) throw new Error(made.missing);
  const [file, first] =
    environment === "go"
      ? [join(made.programs, program), []]
      : environment === "node"
        ? [join(made.programs, "node"), [join(peers, "node", program)]]
        : [join(made.programs, "python"), [join(peers, "python", program)]];
  return spawn(file, [...first, ...args], {
    env: { ...env, ...settings.env },
    stdio: ["pipe", "pipe", settings.quiet === true ? "ignore" : "inherit"],
  });
}

async function* linesOf(child: ChildProcess): AsyncGenerator<Said> {
  if (child.stdout === null) return;
  for await (const line of createInterface({ input: child.stdout })) yield JSON.parse(line) as Said;
}

export interface ClientRun {
  /** A file with the certificate of a TLS server. */
  readonly certificate?: string;
  /** Called with each line. */
  readonly heard?: (said: Said) => void;
}

/** Runs a client to the end, and returns its reports by step. */
export async function runClient(
  program: PeerProgram,
  args: readonly string[],
  { certificate, heard }: ClientRun = {},
): Promise<ReadonlyMap<string, Said>> {
  const child = start(program, args, certificate === undefined ? {} : { env: { INTEROP_CA: certificate } });
  const ended = once(child, "exit");
  try {
    const steps = new Map<string, Said>();
    for await (const said of linesOf(child)) {
      steps.set(said.step, said);
      heard?.(said);
    }
    const [code] = await ended;
    if (code !== 0) throw new Error(`${program.name} ended with ${String(code)}`);
    return steps;
  } finally {
    child.kill("SIGKILL");
  }
}

export interface RunningServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a server, and waits until it reports its URL. `push`: with webhooks. */
export async function startServer(program: PeerProgram, args: readonly string[] = []): Promise<RunningServer> {
  // They log each error that they return. INTEROP_TRACE shows these, and where clients fail.
  const child = start(program, args, { quiet: trace === undefined });
  const ended = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  for await (const { step, result } of linesOf(child)) {
    if (step === "ready") return { url: String(result), stop };
  }
  await stop();
  throw new Error(`${program.name} ended before it was ready`);
}

export interface RunningReceiver extends RunningServer {
  /** Its reports on webhooks so far. */
  readonly heard: readonly Said[];
}

/** Starts a receiver for webhooks with this token. */
export async function startReceiver(program: PeerProgram, token: string): Promise<RunningReceiver> {
  const child = start(program, [token]);
  const ended = once(child, "exit");
  const heard: Said[] = [];
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  const url = await new Promise<string>((resolve, reject) => {
    const reading = async (): Promise<void> => {
      for await (const said of linesOf(child)) {
        if (said.step === "ready") resolve(String(said.result));
        else heard.push(said);
      }
      // Its end matters only before it is ready.
      throw new Error(`${program.name} ended`);
    };
    reading().catch(reject);
  });
  return { url, heard, stop };
}

/** Declares the tests of a peer. If its setup failed, declares one test that fails with the reason. */
export function describePeer(program: PeerProgram, tests: () => void): void {
  describe(`${program.name}`, () => {
    const made = inject("environments")[program.environment];
    if (!("missing" in made)) return tests();
    it("can be started", () => {
      throw new Error(made.missing);
    });
  });
}

/** The output and the exit code of a program. */
export async function runCommand(
  program: PeerProgram,
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly printed: string }> {
  const made = inject("environments")[program.environment];
  if ("missing" in made) throw new Error(made.missing);
  const child = spawn(join(made.programs, program.program), [...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const output of [child.stdout, child.stderr]) output.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, printed: text };
}

/** The output of a program. */
export async function printed(program: PeerProgram, args: readonly string[]): Promise<string> {
  const child = start(program, args);
  let text = "";
  child.stdout?.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program.name} ended with ${String(code)}`);
  return text;
}

import process from "node:process";
import type { Logger } from "@parley/a2a";
import type { LogLevel, LogStream } from "@parley/node";
import type { LogFormat } from "./options.ts";
import { hasColours } from "./output/text.ts";

/** Standard output or standard error. */
export interface Out {
  write(text: string): void;
  /** Whether it is a terminal. */
  readonly terminal: boolean;
  /** Width in characters, if known. */
  readonly columns: number | undefined;
}

export type Signal = "SIGINT" | "SIGTERM";

/** What a command uses of its process. Tests pass another one. */
export interface Io {
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: Out;
  readonly stderr: Out;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** At the first SIGINT or SIGTERM calls `run`; the second one ends the process. Returns a function that removes the handler. */
  onInterrupt(run: (signal: Signal) => void): () => void;
}

function outOf(stream: NodeJS.WriteStream): Out {
  return {
    write: (text) => void stream.write(text),
    terminal: stream.isTTY,
    columns: stream.columns,
  };
}

export function processIo(): Io {
  return {
    stdin: process.stdin,
    stdout: outOf(process.stdout),
    stderr: outOf(process.stderr),
    env: process.env,
    cwd: process.cwd(),
    onInterrupt(run) {
      const release = (): void => {
        process.off("SIGINT", once);
        process.off("SIGTERM", once);
      };
      const once = (signal: NodeJS.Signals): void => {
        release();
        run(signal === "SIGTERM" ? "SIGTERM" : "SIGINT");
      };
      process.on("SIGINT", once);
      process.on("SIGTERM", once);
      return release;
    },
  };
}

/** A logger that writes to standard error. */
export async function logTo(io: Io, level: LogLevel, format: LogFormat): Promise<Logger> {
  // Loaded only on request: the module of the logger loads the server as well.
  const { standardLogger } = await import("@parley/node");
  const { stderr } = io;
  const stream: LogStream = { write: (text) => stderr.write(text), isTTY: stderr.terminal };
  return standardLogger({ level, format, stream, colors: hasColours(stderr, io.env) });
}

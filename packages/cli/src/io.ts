import process from "node:process";

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

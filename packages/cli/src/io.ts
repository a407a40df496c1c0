import process from "node:process";

/** Where a command writes: standard output, or standard error. */
export interface Out {
  write(text: string): void;
  /** Whether a person looks at it. */
  readonly terminal: boolean;
  /** Width in characters, where that is known. */
  readonly columns: number | undefined;
}

export type Signal = "SIGINT" | "SIGTERM";

/** Everything that a command has of the process it runs in, so that a test can hand it something else. */
export interface Io {
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: Out;
  readonly stderr: Out;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Calls `run` instead of ending at the first SIGINT or SIGTERM; the next one ends the process. The returned function takes it back. */
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

import { once } from "node:events";
import process from "node:process";
import type { ConnectOptions } from "@parley/a2a/internal/client/index";
import { createInterface } from "node:readline";
import { Writable, type Readable } from "node:stream";
import { programFor } from "./invocation.ts";

/** Standard output or standard error. */
export interface Out {
  write(text: string): void;
  /** Resolves once the stream accepts more, which bounds the memory of a long output. Default: immediately. */
  ready?(): Promise<unknown> | undefined;
  readonly terminal: boolean;
  /** Width in characters, if known. */
  readonly columns: number | undefined;
}

export type Signal = "SIGINT" | "SIGTERM";

/** The parts of its process that a command uses. Tests replace them. */
export interface Io {
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: Out;
  readonly stderr: Out;
  /**
   * Asks the user on a terminal, without an echo if `hidden`. Without a terminal, the next line of standard input is the answer.
   * `undefined`: no answer.
   */
  ask(question: string, options: { readonly hidden: boolean }): Promise<string | undefined>;
  /** Whether the user can be asked: standard input and standard error are terminals. */
  readonly interactive: boolean;
  /** Opens a page in a browser. Rejects without one. */
  openPage(url: string): Promise<void>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Retries of calls. Default: the default of clients. */
  readonly retry?: ConnectOptions["retry"];
  readonly cwd: string;
  /** The command that runs this program: `parley`, `npx parley`, and so on. */
  readonly program: string;
  /** Calls `run` at the first SIGINT or SIGTERM; a second one ends the process. Returns a function that removes the handler. */
  onInterrupt(run: (signal: Signal) => void): () => void;
}

function outOf(stream: NodeJS.WriteStream): Out {
  return {
    write: (text) => void stream.write(text),
    ready: () => (stream.writableNeedDrain ? once(stream, "drain") : undefined),
    terminal: stream.isTTY,
    columns: stream.columns,
  };
}

/** Answers from lines of standard input. */
function linesOf(stream: NodeJS.ReadStream): () => Promise<string | undefined> {
  let lines: AsyncIterator<string, undefined> | undefined;
  return async () => {
    lines ??= createInterface({ input: stream })[Symbol.asyncIterator]();
    const next: IteratorResult<string, undefined> = await lines.next();
    return next.value;
  };
}

export function processIo(): Io {
  const nextLine = linesOf(process.stdin);
  const askUser = askerOn(process.stdin, process.stderr);
  return {
    async openPage(url) {
      // Loaded only when needed, because it also loads the server.
      const { openBrowser } = await import("@parley/node");
      await openBrowser(url);
    },
    ask: (question, { hidden }) => (process.stdin.isTTY ? askUser(question, hidden) : nextLine()),
    interactive: process.stdin.isTTY && process.stderr.isTTY,
    stdin: process.stdin,
    stdout: outOf(process.stdout),
    stderr: outOf(process.stderr),
    env: process.env,
    cwd: process.cwd(),
    get program() {
      const { env, execArgv, platform } = process;
      return programFor({ env, script: process.argv[1] ?? "", execArgv, platform, cwd: process.cwd() });
    },
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

/** Asks a question, without an echo if hidden. Ctrl-C and Ctrl-D resolve with `undefined`. */
export type AskUser = (question: string, hidden: boolean) => Promise<string | undefined>;

interface Echo {
  write(piece: string | Buffer): unknown;
}

/**
 * Asks on a terminal. Keeps input that arrives before its question: a user may paste several lines, or type ahead of a slow agent.
 */
export function askerOn(input: Readable, output: Echo): AskUser {
  /** Answers to later questions. `undefined`: Ctrl-C or Ctrl-D. */
  const ahead: (string | undefined)[] = [];
  /** The beginning of the next answer. */
  let begun = "";
  return async (question, hidden) => {
    output.write(question);
    if (ahead.length > 0) {
      const answer = ahead.shift();
      output.write(answer === undefined || hidden ? "\n" : `${answer}\n`);
      return answer;
    }
    let isShown = !hidden;
    const echo = new Writable({
      write(chunk: Buffer, _encoding, done) {
        if (isShown) output.write(chunk);
        done();
      },
    });
    const reader = createInterface({ input, output: echo, terminal: true });
    try {
      return await new Promise<string | undefined>((resolve) => {
        let isAnswered = false;
        const take = (answer: string | undefined): void => {
          if (isAnswered) ahead.push(answer);
          else resolve(answer);
          isAnswered = true;
          // The rest of the input answers later questions, which may be hidden ones.
          isShown = false;
        };
        reader.on("line", take);
        reader.once("close", () => take(undefined));
        if (begun !== "") reader.write(begun);
      });
    } finally {
      begun = reader.line;
      reader.removeAllListeners("close");
      reader.close();
      if (hidden) output.write("\n");
    }
  };
}

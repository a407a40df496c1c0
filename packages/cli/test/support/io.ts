import type { Io, Signal } from "../../src/io.ts";
import { collect } from "../../../../test/secrets.ts";

export interface RecordedIo {
  readonly io: Io;
  readonly out: () => string;
  readonly err: () => string;
  /** What a terminal that shows both would hold. */
  readonly both: () => string;
  interrupt(signal: Signal): void;
}

/** An `Io` that records output. */
export function recordedIo(
  init: {
    terminal?: boolean;
    interactive?: boolean;
    env?: Io["env"];
    cwd?: string;
    stdin?: string;
    openPage?: (url: string) => unknown;
  } = {},
): RecordedIo {
  const { terminal = false, interactive = false, env = {}, cwd = "/", stdin = "", openPage = () => {} } = init;
  let out = "";
  let err = "";
  let both = "";
  const answers = stdin.split("\n");
  const listeners = new Set<(signal: Signal) => void>();
  return {
    io: {
      stdin: (async function* () {
        yield new TextEncoder().encode(stdin);
      })(),
      openPage: async (url) => void (await openPage(url)),
      ask: async (question) => {
        err += question;
        both += question;
        return answers.shift();
      },
      interactive,
      stdout: { write: (text) => ((out += text), void (both += text)), terminal, columns: terminal ? 100 : undefined },
      stderr: {
        write: (text) => (collect(text), (err += text), void (both += text)),
        terminal,
        columns: terminal ? 100 : undefined,
      },
      env,
      cwd,
      program: "parley",
      retry: { budget: 100, minDelay: 40 },
      onInterrupt(run) {
        listeners.add(run);
        return () => void listeners.delete(run);
      },
    },
    out: () => out,
    err: () => err,
    both: () => both,
    interrupt: (signal) => listeners.forEach((run) => run(signal)),
  };
}

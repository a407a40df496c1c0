import { createInterface } from "node:readline";
import { Writable, type Readable } from "node:stream";

/** Asks a question. Hidden text is not echoed. Ctrl-C and Ctrl-D are no answer: `undefined`. */
export type AskUser = (question: string, hidden: boolean) => Promise<string | undefined>;

/** What shows questions, and what is typed. */
interface Output {
  write(piece: string | Buffer): unknown;
}

/**
 * Asks on a terminal. Input that arrives before its question is kept for it: a user may paste several lines, or type ahead of a slow agent.
 */
export function askerOn(input: Readable, output: Output): AskUser {
  /** Answers to questions that are not asked yet. `undefined`: Ctrl-C or Ctrl-D. */
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
          // The rest of the input is shown when its question is asked, which may hide it.
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

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { defined, ratio, type Case, type Figures } from "../case.ts";
import { summary } from "../load/latencies.ts";

/** Milliseconds from the start of a process until its server has answered a message. */
async function start(name: string, args: readonly string[] = []): Promise<number> {
  const began = performance.now();
  const file = fileURLToPath(new URL(`../servers/cold/${name}.js`, import.meta.url));
  const child = fork(file, args, { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
  try {
    const url = await new Promise<string>((resolve, reject) => {
      child.once("message", (message: string) => resolve(message));
      child.once("exit", () => reject(new Error(`${name} ended`)));
    });
    const answer = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "a2a-version": "1.0" },
      body: '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}}}',
    });
    const body = await answer.text();
    if (!body.includes("hello")) throw new Error(`${name} answered ${body}`);
    return performance.now() - began;
  } finally {
    child.kill("SIGKILL");
  }
}

export const coldCase: Case = {
  name: "cold",
  what: "From the start of a process to its first answer",
  operation: "a start",
  targets: [
    {
      measure: "cold",
      says: "first answer, in memory",
      unit: "ms",
      atMost: 250,
    },
  ],
  async run(bench) {
    const subjects: Readonly<Record<string, () => Promise<number>>> = {
      parley: () => start("parley"),
      official: () => start("official"),
      raw: () => start("raw"),
      sqlite: () => start("parley", [bench.file(".db")]),
    };
    const times: Record<string, number[]> = {};
    // The first round loads the files into the system's cache.
    for (let round = 0; round <= bench.size(11, 2); round++) {
      for (const [name, once] of Object.entries(subjects)) {
        const took = await once();
        if (round > 0) (times[name] ??= []).push(took);
      }
    }
    const of = (name: string): Figures => summary(times[name] ?? []);
    return {
      parley: of("parley"),
      official: of("official"),
      raw: of("raw"),
      also: { "parley, on SQLite": of("sqlite") },
      measures: defined({
        cold: of("parley").p50,
        coldToOfficial: ratio(of("parley").p50, of("official").p50),
      }),
    };
  },
};

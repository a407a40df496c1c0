import { appendFileSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { defineAgent, silentLogger, systemClock, type Agent, type Turn } from "@parley/server";
import { serve, type Server } from "@parley/node";
import { killedStore, say } from "./killed-store.ts";

// The server whose agents have side effects, questions and waits, and which the test kills: node steps-server.ts FILE PORT
// [before|after COUNT]. With the last two arguments it kills itself just before or after append number COUNT. Prints "ready" once it listens.
// Adds a line to FILE.effects for each side effect.

const [path = "", port, moment, count] = process.argv.slice(2);

// Each process runs one minute ahead of the previous one, so that the leases of a killed process have expired.
const lives = `${path}.lives`;
const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));
const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };

const effects = `${path}.effects`;

function die(): never {
  process.kill(process.pid, "SIGKILL");
  throw new Error("It is dead");
}

/** Books. In its first attempt, it dies at the moment that the message names. */
async function book(turn: Turn): Promise<number> {
  const dies = (at: string): void => void (turn.attempt === 1 && turn.text.endsWith(` ${at}`) && die());
  dies("before");
  const booked = await turn.step("book", ({ key, uncertain }) => {
    dies("inside");
    const asks = turn.text.includes("asking");
    const done = asks && uncertain && readFileSync(effects, "utf8").includes(key);
    if (!done) appendFileSync(effects, `${turn.text} ${key} ${uncertain}\n`);
    dies("effect");
    return { life };
  });
  dies("recorded");
  return booked.life;
}

const card = { description: "A test", version: "1.0.0", skills: [] };

const waiter = (resumable: boolean): Agent =>
  defineAgent({
    ...card,
    name: "Waiter",
    resumable,
    async *onMessage(turn) {
      yield turn.working("Waiting", { keep: true });
      const booked = await book(turn);
      yield* turn.sleep(30_000);
      const word = yield* turn.waitFor("word");
      yield turn.completed(JSON.stringify({ booked, word }));
    },
  });

const store = await killedStore(path, moment, count);

const server: Server = await serve(
  [
    {
      path: "/booker",
      agent: defineAgent({
        ...card,
        name: "Booker",
        resumable: true,
        async *onMessage(turn) {
          yield turn.working("Booking");
          await turn.flush();
          const booked = await book(turn);
          yield turn.completed(`booked in life ${booked}`);
        },
      }),
    },
    {
      path: "/asker",
      agent: defineAgent({
        ...card,
        name: "Asker",
        async *onMessage(turn) {
          if (turn.number > 1) return yield turn.completed(`You said ${turn.text}`);
          if (turn.text === "never asks") {
            yield turn.working("Working");
            await new Promise(() => {});
          }
          try {
            yield turn.inputRequired("Which city?");
          } finally {
            // Still running when the process is killed.
            if (turn.text.startsWith("asks slowly")) await new Promise(() => {});
          }
        },
      }),
    },
    { path: "/waiter", agent: waiter(true) },
    { path: "/plain-waiter", agent: waiter(false) },
  ],
  {
    port: Number(port),
    store,
    clock,
    logger: { ...silentLogger, error: say },
    pollInterval: 20,
    routes: async (request) => {
      const { pathname } = new URL(request.url);
      const [, what, taskId = ""] = pathname.split("/");
      if (what === "word") await server.signal(taskId, "word", "hello", { id: "word-1" });
      else if (what !== "run") return undefined;
      const heads = await Promise.all(["/waiter", "/plain-waiter"].map((id) => store.head({ agent: id }, taskId)));
      return Response.json(heads.some((head) => head?.run !== undefined));
    },
  },
);
writeSync(1, "ready\n");

import { appendFileSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { defineAgent, serve, text } from "@parley/node";
import { silentLogger, systemClock } from "@parley/a2a/internal/base/index";
import { httpFacilitator, x402 } from "@parley/extensions/x402";
import { killedStore, say } from "./killed-store.ts";

// The paid agent, which the test kills: node paid-server.ts FILE PORT. FILE.facilitator has the URL of its facilitator. Prints "ready" once
// it listens. Adds a line to FILE.effects for each painting.

const [path = "", port] = process.argv.slice(2);

// Each process runs one minute ahead of the previous one, so that the leases of a killed process have expired.
const lives = `${path}.lives`;
const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));
const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };

const payments = x402({
  // A facilitator on this machine: by default, the server only calls public addresses.
  facilitator: httpFacilitator(readFileSync(`${path}.facilitator`, "utf8"), { fetch: (url, init) => fetch(url, init) }),
});

const agent = defineAgent({
  name: "Painter",
  description: "Paints for money",
  version: "1.0.0",
  skills: [],
  resumable: true,
  extensions: [payments],
  async *onMessage(turn) {
    const dies = (at: string): void => {
      if (turn.attempt === 1 && turn.text.endsWith(` ${at}`)) process.kill(process.pid, "SIGKILL");
    };
    const charge = turn.ext(payments)?.charge({
      accepts: [
        {
          network: "base",
          asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bda02913",
          payTo: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
          maxAmountRequired: "48240000",
          resource: "https://painter.example/paint",
          maxTimeoutSeconds: 86_400,
        },
      ],
      async *work() {
        dies("before the work");
        await turn.step("paint", ({ key }) => {
          appendFileSync(`${path}.effects`, `${turn.text}: ${key}\n`);
          return life;
        });
        dies("after the work");
        yield turn.artifact({ artifactId: "picture", parts: [text(turn.text)] });
        await turn.flush();
        dies("after the picture");
      },
    });
    if (charge === undefined) throw new Error("The extension is not active");
    yield* charge;
  },
});

await serve(agent, {
  port: Number(port),
  store: await killedStore(path),
  clock,
  logger: { ...silentLogger, error: say },
  pollInterval: 20,
});
writeSync(1, "ready\n");

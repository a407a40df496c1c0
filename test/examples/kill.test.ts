import { connect } from "@parley/a2a";
import { describe, expect, it, onTestFinished } from "vitest";
import { random } from "../crash/plan.ts";
import { examples, ours, Program, type Example } from "./program.ts";
import { Reader } from "./reader.ts";
import { steps } from "./steps.ts";

/**
 * Each example as the program that `npm start -- NAME` runs, with SQLite on disk and a client over HTTP. Its process is killed with
 * SIGKILL while it works, and started again on its file. The client continues on its own, and is told what an undisturbed client is told:
 * nothing is lost, and nothing comes twice. PARLEY_SEED repeats the choice of the moments.
 */
const kills = 4;
const seed = Number(process.env["PARLEY_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

/** Plays the steps of an example. `killAt`: after how many events its process is killed. Resolves to what was told, and how many events came. */
async function play(name: Example, killAt: readonly number[]) {
  const program = await Program.in(ours(name));
  onTestFinished(() => program.end());
  const client = await connect(program.url);
  let events = 0;
  const reader = new Reader(client, async () => {
    events += 1;
    if (!killAt.includes(events)) return;
    await program.kill();
    await program.start();
  });
  const told = await steps[name](reader);
  /** How often a task went on with the work that a killed process had begun. */
  const resumed = program.complaints.filter((line) => line.includes("Task resumed")).length;
  return { told, events, resumed };
}

describe.each(examples)("%s", (name) => {
  /**
   * Whether the number of events is always the same. How much progress of others a planner sees depends on when they report it, and how many
   * pieces of text are one event depends on how fast the model writes them (`maxDelay` of `turn.writer()`).
   */
  const isExact = name !== "travel-planner" && name !== "ai-sdk";

  it(`gets the same answer when its process is killed at ${kills} moments, seed ${seed}`, async () => {
    const undisturbed = await play(name, []);
    expect(undisturbed.events).toBeGreaterThan(3);
    const next = random(seed);
    for (let kill = 0; kill < kills; kill += 1) {
      const moment = 1 + Math.floor(next() * undisturbed.events);
      const killed = await play(name, [moment]);
      expect(killed.told, `killed after event ${moment}`).toEqual(undisturbed.told);
      if (isExact) expect(killed.events, `killed after event ${moment}`).toBe(undisturbed.events);
    }
  });

  it(`gets the same answer when its process is killed again and again, seed ${seed}`, async () => {
    const undisturbed = await play(name, []);
    const moments = [0.2, 0.5, 0.8].map((share) => Math.ceil(share * undisturbed.events));
    const killed = await play(name, moments);
    expect(killed.told).toEqual(undisturbed.told);
    // The others may only have been killed between two pieces of work.
    if (name === "token-streamer" || name === "long-running") expect(killed.resumed).toBeGreaterThan(0);
    if (isExact) expect(killed.events).toBe(undisturbed.events);
  });
});

import { connect } from "@parley/a2a";
import { describe, expect, it, onTestFinished } from "vitest";
import { random } from "../crash/plan.ts";
import { examples, ours, Program, type Example } from "./program.ts";
import { Reader } from "./reader.ts";
import { steps } from "./steps.ts";

/**
 * Runs each example as `npm start -- NAME` does, with SQLite on disk and a client over HTTP. Kills the process with SIGKILL while it works,
 * and restarts it with the same file. The client continues on its own, and must receive what an undisturbed client receives, without losses or
 * repetitions. PARLEY_SEED repeats the random moments of a run.
 */
const kills = 4;
const seed = Number(process.env["PARLEY_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

/** Plays the steps of an example. `killAt`: numbers of events after which the process is killed. Resolves to the answers and the event count. */
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
  /** The number of times that a task resumed the work of a killed process. */
  const resumed = program.complaints.filter((line) => line.includes("Task resumed")).length;
  return { told, events, resumed };
}

describe.each(examples)("%s", (name) => {
  /**
   * Whether the number of events is predictable. The planner may report more or less of its experts' progress, depending on timing, and a model's
   * pieces of text become more or fewer events, depending on its speed (`maxDelay` of `turn.writer()`).
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
    // The other examples may have been killed only while they had no work in progress.
    if (name === "token-streamer" || name === "long-running") expect(killed.resumed).toBeGreaterThan(0);
    if (isExact) expect(killed.events).toBe(undisturbed.events);
  });
});

import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { A2AError, connect } from "@parley/a2a";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, describe, expect, it } from "vitest";
import { integrityOf } from "../../packages/sql/test/sqlite/integrity.ts";
import { times } from "../counts.ts";
import { diskFolder } from "../temporary.ts";
import { Load, type AgentName } from "./load.ts";
import { comparable, expectBeginning, expectComplete, expectWhole, outcomesOf, undisturbed } from "./outcome.ts";
import { random } from "./plan.ts";
import { reservePort, Supervisor } from "./supervisor.ts";

/**
 * SIGKILL at random points of streaming turns. In a third of the cases the server kills itself just before or just after a
 * commit. In the others the test kills it after a random number of events. PARLEY_SEED repeats a run, except for the timing.
 */
const kills = times(4, 200);
const seed = Number(process.env["PARLEY_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

const folder = await mkdtemp(join(diskFolder(), "parley-crash-"));
const path = join(folder, "tasks.db");
const supervisor = new Supervisor(path, await reservePort());
afterAll(async () => {
  supervisor.stop();
  await rm(folder, { recursive: true });
});

/** Counts events, and lets a caller wait for more of them. */
class Counter {
  count = 0;
  #waiting: { readonly at: number; readonly resolve: () => void } | undefined;

  note(): void {
    this.count += 1;
    if (this.#waiting !== undefined && this.count >= this.#waiting.at) this.#waiting.resolve();
  }

  /** Resolves after this many more events. */
  more(events: number): Promise<void> {
    if (events === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#waiting = { at: this.count + events, resolve }));
  }
}

describe("a server that is killed and restarted on its file", () => {
  it(`loses no event, repeats none, and ends every task: at least ${kills} kills, seed ${seed}`, async () => {
    const next = random(seed);
    const upTo = (most: number): number => Math.floor(next() * most);
    const seen = new Counter();

    let life = await supervisor.start();
    const cardOf = async (agent: AgentName) => (await connect(`${supervisor.url}/${agent}`)).card;
    const cards = { resumable: await cardOf("resumable"), plain: await cardOf("plain") };
    const load = new Load({ cards, random: random(seed + 1), onEvent: () => seen.note() });
    const ended = load.run();
    // The load must not end before `load.end()`.
    const trouble = ended.then(() => Promise.reject(new Error("The load ended before its time")));
    trouble.catch(() => {});

    // Sends that the client may not repeat are rare, so the test adds a few kills until one occurs.
    const seenAll = (): boolean => load.failures.length > 0 && load.resumed > 0;
    let killed = 0;
    for (; killed < kills || (!seenAll() && killed < 10 * kills); killed += 1) {
      if (killed > 0 && next() < 0.33) {
        life = await supervisor.start({ moment: next() < 0.5 ? "before" : "after", append: 1 + upTo(120) });
      } else {
        if (killed > 0) life = await supervisor.start();
        await Promise.race([seen.more(upTo(300)), life.end, trouble]);
        life.kill("SIGKILL");
      }
      expect(await Promise.race([life.end, trouble])).toBe("SIGKILL");
    }
    life = await supervisor.start();
    load.end();
    await ended;
    life.kill("SIGTERM");
    expect(await life.end).toBe("SIGTERM");
    expect(supervisor.complaints).toEqual([]);

    expect(integrityOf(path)).toEqual(["ok"]);
    const store = await sqliteStore({ path });
    const outcomes = { resumable: await outcomesOf(store, "resumable"), plain: await outcomesOf(store, "plain") };
    await store.close();

    const ways = { tasks: 0, resumed: 0, failed: 0 };
    for (const story of load.stories) {
      const outcome = outcomes[story.agent].get(story.taskId);
      if (outcome === undefined) throw new Error(`Task ${story.taskId} is not in the store`);
      expectWhole(outcome);
      const { task, log } = outcome;
      const whole = await undisturbed(story);
      ways.tasks += 1;
      if (log.some(({ attempt }) => attempt > 1)) ways.resumed += 1;
      if (story.agent === "plain" && task.status.state === "TASK_STATE_FAILED") {
        ways.failed += 1;
        expect(task.status.message?.parts).toEqual([
          { text: "The server was interrupted while it worked on this task, and the agent cannot resume it." },
        ]);
        expectBeginning(task.artifacts, whole);
      } else {
        expect(task.status.state).toBe("TASK_STATE_COMPLETED");
        expect(comparable(task.artifacts)).toEqual(comparable(whole));
      }
      const said = log.filter(({ actor }) => actor === "user").length;
      expect(said).toBe(story.texts.length);
      if (story.answer !== undefined) expect(story.answer).toEqual(task);
    }
    for (const stream of load.streams) {
      const outcome = outcomes[stream.story.agent].get(stream.story.taskId);
      if (outcome !== undefined) expectComplete(stream, outcome);
    }
    // Each message created one task, even if it was sent several times.
    const ids = new Set(load.stories.map(({ taskId }) => taskId));
    expect(ids.size).toBe(load.stories.length);
    expect(outcomes.resumable.size + outcomes.plain.size).toBe(ids.size);
    // Sends that the client may not repeat failed with an error that explains this.
    for (const failure of load.failures) {
      expect(failure).toBeInstanceOf(A2AError);
      expect(["ConnectionFailed", "ConnectionLost"]).toContain((failure as A2AError).code);
    }
    console.log(
      `${killed} kills, seed ${seed}: ${ways.tasks} tasks, of which ${ways.resumed} were resumed and ${ways.failed} failed; ` +
        `${seen.count} events over ${load.streams.length} streams, taken up again ${load.resumed} times; ` +
        `${load.failures.length} sends broke off`,
    );
    for (const count of [ways.resumed, ways.failed, load.resumed, load.failures.length])
      expect(count).toBeGreaterThan(0);
  });
});

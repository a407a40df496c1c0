import type { TaskSnapshot, WatchedTask } from "@parley/a2a/internal/client/index";
import { declareCases, until, type Expect, type Runner } from "./runner.ts";

/** A watched task, with its agent and the network in between. */
export interface WatchUnderTest {
  /** The task, without subscriptions. */
  readonly watched: WatchedTask;
  /** The agent appends text to an artifact, which it creates if necessary. */
  append(artifactId: string, text: string): void;
  /** The agent completes the task. */
  complete(): void;
  /** Breaks the open connections. Clients can reconnect immediately. */
  disconnect(): void;
  /** Makes every connection fail, open and new ones, until `reconnect()`. The client gives up within seconds. */
  cutOff(): void;
  /** Ends `cutOff()`. */
  reconnect(): void;
  /** Number of open streams. */
  openStreams(): number;
  /** Ends the task, the client and the server. */
  close(): Promise<void>;
}

/** Watched tasks under test. */
export interface WatchContractOptions {
  /** Starts a task that works until it is completed. Each case gets its own, and closes it. */
  readonly open: () => Promise<WatchUnderTest>;
}

/**
 * Tests every rule of the `WatchedTask` port.
 *
 * ```ts
 * import { describe, it } from "node:test";
 * import { watchContract } from "@parley/testing";
 *
 * watchContract({ describe, it }, { open: () => myWatchedTask() });
 * ```
 */
export function watchContract(runner: Runner, { open }: WatchContractOptions): void {
  declareCases(runner, "a watched task", cases, async () => {
    const given = await open();
    return { given, close: () => given.close() };
  });
}

type Case = (run: WatchUnderTest, expect: Expect) => Promise<void>;

const cases: Readonly<Record<string, Case>> = {
  "returns the same snapshot until something changes, and a new one after each change": async (run, expect) => {
    // Frameworks call the functions without their object.
    const { getSnapshot, subscribe } = run.watched;
    const before = getSnapshot();
    expect(getSnapshot() === before).toEqual(true);
    const seen: TaskSnapshot[] = [];
    const unsubscribe = subscribe(() => seen.push(getSnapshot()));
    for (const text of ["one ", "two ", "three"]) run.append("a", text);
    await until("the snapshot has the text", () => textOf(getSnapshot(), "a") === "one two three");
    expect(getSnapshot() === getSnapshot()).toEqual(true);
    expect(new Set([before, ...seen]).size).toEqual(seen.length + 1);
    unsubscribe();
  },

  "opens no stream before the first subscription": async (run, expect) => {
    run.append("a", "one");
    await soon();
    expect(run.openStreams()).toEqual(0);
    expect(textOf(run.watched.getSnapshot(), "a")).toEqual("");
  },

  "ends when the task ends": async (run, expect) => {
    const { getSnapshot, subscribe } = run.watched;
    let calls = 0;
    subscribe(() => (calls += 1));
    run.append("a", "all");
    run.complete();
    await until("the task has ended", () => getSnapshot().ended);
    const { task, error } = getSnapshot();
    expect([task?.status.state, textOf(getSnapshot(), "a"), error]).toEqual(["TASK_STATE_COMPLETED", "all", undefined]);
    await until("the stream is closed", () => run.openStreams() === 0);
    // A later subscriber gets the final snapshot without a new stream.
    const before = calls;
    subscribe(() => (calls += 1));
    await soon();
    expect([run.openStreams(), calls]).toEqual([0, before]);
  },

  "keeps the identity of unchanged objects": async (run, expect) => {
    const { getSnapshot, subscribe } = run.watched;
    subscribe(() => {});
    run.append("a", "stays");
    run.append("b", "one");
    await until("the snapshot has both artifacts", () => textOf(getSnapshot(), "b") === "one");
    const before = getSnapshot().task;
    run.append("b", " two");
    await until("the artifact has grown", () => textOf(getSnapshot(), "b") === "one two");
    const after = getSnapshot().task;
    const isSame = [after?.status === before?.status, artifactOf(after, "a") === artifactOf(before, "a")];
    expect([...isSame, artifactOf(after, "b") === artifactOf(before, "b"), after === before]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  },

  "neither loses nor repeats data when connections break": async (run, expect) => {
    const { getSnapshot, subscribe } = run.watched;
    subscribe(() => {});
    const words = Array.from({ length: 12 }, (_, at) => `${at} `);
    for (const word of words) {
      run.append("a", word);
      await until("the snapshot has the word", () => textOf(getSnapshot(), "a").endsWith(word));
      run.disconnect();
    }
    run.complete();
    await until("the task has ended", () => getSnapshot().ended);
    expect([textOf(getSnapshot(), "a"), getSnapshot().error]).toEqual([words.join(""), undefined]);
  },

  "continues for the next subscriber after the last one left": async (run, expect) => {
    const { getSnapshot, subscribe } = run.watched;
    const unsubscribe = subscribe(() => {});
    run.append("a", "one ");
    await until("the snapshot has the first chunk", () => textOf(getSnapshot(), "a") === "one ");
    unsubscribe();
    await until("the stream is closed", () => run.openStreams() === 0);
    run.append("a", "two ");
    await soon();
    expect(textOf(getSnapshot(), "a")).toEqual("one ");
    subscribe(() => {});
    run.append("a", "three");
    await until("the snapshot has all chunks", () => textOf(getSnapshot(), "a") === "one two three");
  },

  "calls each listener until it unsubscribes": async (run, expect) => {
    const { getSnapshot, subscribe } = run.watched;
    const calls = { left: 0, stayed: 0, twice: 0 };
    const leave = subscribe(() => (calls.left += 1));
    subscribe(() => (calls.stayed += 1));
    const twice = (): void => void (calls.twice += 1);
    const leaveOnce = subscribe(twice);
    subscribe(twice);
    leave();
    leave();
    leaveOnce();
    run.append("a", "one");
    await until("the snapshot has the text", () => textOf(getSnapshot(), "a") === "one");
    expect([calls.left, calls.stayed > 0, calls.twice === calls.stayed, run.openStreams()]).toEqual([0, true, true, 1]);
  },

  "opens one stream for subscriptions that start and end at once": async (run, expect) => {
    const { getSnapshot, subscribe } = run.watched;
    for (let at = 0; at < 5; at += 1) subscribe(() => {})();
    subscribe(() => {});
    run.append("a", "one");
    await until("the snapshot has the text", () => textOf(getSnapshot(), "a") === "one");
    expect(run.openStreams()).toEqual(1);
  },

  "reports an error if the stream fails, keeps the task, and retries for the next subscriber": async (run, expect) => {
    const { getSnapshot, subscribe } = run.watched;
    const unsubscribe = subscribe(() => {});
    run.append("a", "one ");
    await until("the snapshot has the first chunk", () => textOf(getSnapshot(), "a") === "one ");
    run.cutOff();
    await until("the watched task has an error", () => getSnapshot().error !== undefined);
    expect([getSnapshot().ended, textOf(getSnapshot(), "a"), getSnapshot().error instanceof Error]).toEqual([
      true,
      "one ",
      true,
    ]);
    unsubscribe();
    run.reconnect();
    run.append("a", "two");
    subscribe(() => {});
    await until("the snapshot has all chunks", () => textOf(getSnapshot(), "a") === "one two");
    expect([getSnapshot().ended, getSnapshot().error]).toEqual([false, undefined]);
  },
};

function artifactOf(task: TaskSnapshot["task"], artifactId: string) {
  return task?.artifacts?.find((each) => each.artifactId === artifactId);
}

function textOf({ task }: TaskSnapshot, artifactId: string): string {
  return (
    artifactOf(task, artifactId)
      ?.parts.map(({ text = "" }) => text)
      .join("") ?? ""
  );
}

/** Waits long enough for an unexpected event to arrive. */
async function soon(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 50));
}

import { describe, expect, it, vi } from "vitest";
import { newTask, send } from "./harness/bodies.ts";
import { tasksOf } from "./harness/reading.ts";
import { servers, type Attacked } from "./harness/servers.ts";

/* Clock jumps while leases are held by two servers on one file, each with its own clock. */

const attacked = servers();
const minute = 60_000;
const mounts = [{ agent: "actor" }, { agent: "patient", path: "/p" }, { agent: "brief", path: "/brief" }] as const;

/** Starts a server with its own clock. The holder name in its leases does not identify its process, so other servers cannot see that it is dead. */
function start(holder: string): Promise<Attacked> {
  return attacked.start({ mounts, options: { lease: { ttl: 2_000, holder } } }, { ownClock: true });
}

describe("a wall clock that jumps", () => {
  it("an hour back on both servers lets one take over the task of the other, which dies", async () => {
    const [dying, survivor] = [await start("one"), await start("other")];
    const task = await newTask(`${dying.url}/p`, { words: "wait", returnImmediately: true });
    for (const server of [dying, survivor]) server.jump(-60 * minute);
    // Makes the server store an event with the new time.
    await newTask(dying.url, { words: "work" });
    await dying.kill();
    await vi.waitFor(async () => {
      expect(await tasksOf(`${survivor.url}/p`)).toMatchObject([
        { id: task, status: { state: "TASK_STATE_COMPLETED" } },
      ]);
    }, minute);
  });

  it.each([
    ["one server", 1],
    ["both servers", 2],
  ])("ten minutes forward on %s ends no task by its timeout, and no lease", async (_name, jumping) => {
    const running = [await start("one"), await start("other")];
    const sent = running.map(({ url }) => newTask(url, { words: "hold", returnImmediately: true }));
    const held = await Promise.all(sent);
    for (const server of running.slice(0, jumping)) server.jump(10 * minute);
    // The idle timeout of 3 seconds ends these tasks. By then, the server has renewed leases and checked all timeouts.
    const silent = running.map(({ url }) => send(`${url}/brief`, { words: "hold" }));
    for (const { body } of await Promise.all(silent)) expect(body.task?.status.state).toBe("TASK_STATE_FAILED");
    const states = (await tasksOf(running[0]?.url ?? "")).map(({ id, status }) => [id, status.state]);
    expect(Object.fromEntries(states)).toEqual(Object.fromEntries(held.map((id) => [id, "TASK_STATE_WORKING"])));
  });
});

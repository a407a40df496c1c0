import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { newTask, send } from "./harness/bodies.ts";
import type { Child } from "./harness/child.ts";
import { tasksOf } from "./harness/reading.ts";
import { servers } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";

/* Tasks that a server finds when it starts, whose agents are no longer hosted, or that crash the server. */

const attacked = servers();
const lease = { ttl: 2_000 };

describe("a server that is restarted", () => {
  it("takes over its task beside 110 tasks of a renamed agent", async () => {
    const mounts = (old: string) => [
      { agent: "actor", path: `/${old}` } as const,
      { agent: "patient", path: "/p" } as const,
    ];
    let server = await attacked.start({ mounts: mounts("old") });
    const orphans = Array.from({ length: 110 }, () =>
      newTask(`${server.url}/old`, { words: "hold", returnImmediately: true }),
    );
    await Promise.all(orphans);
    const task = await newTask(`${server.url}/p`, { words: "wait", returnImmediately: true });
    await server.kill();

    server = await attacked.start({ mounts: mounts("new") });
    const { url } = server;
    await vi.waitFor(async () => {
      expect(await tasksOf(`${url}/p`)).toMatchObject([{ id: task, status: { state: "TASK_STATE_COMPLETED" } }]);
    }, 60_000);
  });

  it("suspends a task that made it crash twice, logs its id, and continues the others", async () => {
    const mounts = [
      { agent: "actor" },
      { agent: "poisoned", path: "/poison" },
      { agent: "patient", path: "/p" },
    ] as const;
    const settings = { mounts, options: { lease } };
    const first = await attacked.start(settings);
    const neighbour = await newTask(`${first.url}/p`, { words: "wait", returnImmediately: true });
    // The response may be lost when the process dies.
    const sent = send(`${first.url}/poison`, { words: "x", returnImmediately: true });
    await Promise.allSettled([sent, first.ended()]);

    let died = 0;
    let server = await attacked.launch(settings);
    for (; !(await outlives(server)); died++) server = await attacked.launch(settings);
    expect(died, "starts that crashed").toBe(2);
    const url = String(await server.greeting);
    const [poisoned] = await tasksOf(`${url}/poison`);
    // The user sees no change (docs/decisions/suspended-tasks.md).
    expect(poisoned?.status.state).not.toBe("TASK_STATE_FAILED");
    const command = `parley ops resume ${poisoned?.id ?? "no task"}`;
    expect(server.log.filter((line) => line.includes(command))).toHaveLength(1);
    await vi.waitFor(async () => {
      expect(await tasksOf(`${url}/p`)).toMatchObject([{ id: neighbour, status: { state: "TASK_STATE_COMPLETED" } }]);
    }, 60_000);
    await withstands(await attacked.start(settings), (other) => other.answers(10));
  });
});

/** Returns whether a server survives until it has suspended the poisoned agent's task. */
async function outlives(server: Child): Promise<boolean> {
  while (server.alive) {
    if (server.log.some((line) => line.includes("Task suspended"))) return true;
    await pause(50);
  }
  return false;
}

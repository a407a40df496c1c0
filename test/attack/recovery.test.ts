import { describe, expect, it, vi } from "vitest";
import { newTask } from "./harness/bodies.ts";
import { tasksOf } from "./harness/reading.ts";
import { servers } from "./harness/servers.ts";

/** What a server finds when it starts: tasks of agents that are gone. */

const attacked = servers();

describe("a server that starts again", () => {
  it("takes over its own task beside 110 of an agent that has another name now", async () => {
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
});

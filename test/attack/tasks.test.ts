import { describe, expect, it } from "vitest";
import { mebi, newTask, send } from "./harness/bodies.ts";
import { pagesOf, textLength } from "./harness/reading.ts";
import { servers } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";

/* Tests more text than fits into memory, or into one string of the runtime (536,870,888 characters). */

describe.each([
  { store: "SQLite", tasks: 100 },
  // The store in memory must fit into the heap, so this case has fewer tasks.
  { store: "memory", tasks: 20 },
] as const)("$tasks tasks with a file of 5.5 MB each, on $store", ({ store, tasks }) => {
  const attacked = servers(store);

  it("are listed page by page and read one by one, for each page size", async () => {
    const server = await attacked.start();
    const file = 5.5 * mebi;
    const ids: string[] = [];
    while (ids.length < tasks) {
      const made = Array.from({ length: 4 }, () => newTask(server.url, { words: "work", file }));
      ids.push(...(await Promise.all(made)));
    }
    await withstands(server, async (other) => {
      // One page cannot hold the 100 newest tasks, which include tasks of the other caller.
      const listed = await pagesOf(`${server.url}/tasks?pageSize=100`);
      expect(listed.longest).toBeLessThan(24 * mebi);
      expect(ids.filter((id) => !listed.ids.has(id))).toEqual([]);
      for (const id of ids.slice(0, 10)) {
        const { status, length } = await textLength(`${server.url}/tasks/${id}`);
        expect({ status, large: length > file }).toEqual({ status: 200, large: true });
      }
      await other.answers(3);
    });
  });
});

describe.each(["SQLite", "memory"] as const)("a task on %s", (store) => {
  const attacked = servers(store);
  // A task may have 32 MiB, which remain in memory.
  const allowance = { keeps: store === "memory" ? 33 * mebi : 0 };

  it("accepts follow-ups of 9.5 MB until it is full, rejects the others with the field, and can be read and taken over", async () => {
    let server = await attacked.start();
    const taskId = await newTask(server.url, { words: "hold", returnImmediately: true });
    await withstands(
      server,
      async (other) => {
        const refused = [];
        for (let sent = 0; sent < 30; sent++) {
          const { status, body } = await send(server.url, {
            words: "hold",
            file: 9.5 * mebi,
            taskId,
            returnImmediately: true,
          });
          if (status !== 200) refused.push({ status, error: JSON.stringify(body.error) });
        }
        expect(refused.length).toBeGreaterThanOrEqual(26);
        for (const { status, error } of refused) {
          expect(status).toBe(400);
          expect(error).toContain("message.parts");
        }
        expect(await textLength(`${server.url}/tasks/${taskId}`)).toMatchObject({ status: 200 });
        await other.answers(3);
      },
      allowance,
    );
    if (store === "memory") return;
    for (let restart = 0; restart < 2; restart++) {
      await server.kill();
      server = await attacked.start();
      await withstands(server, (other) => other.answers(10));
      expect(await textLength(`${server.url}/tasks/${taskId}`)).toMatchObject({ status: 200 });
    }
  });

  it("fails with the reason if its agent yields more than fits: 60 artifacts of 10 MB", async () => {
    const server = await attacked.start();
    await withstands(
      server,
      async (other) => {
        const { status, body } = await send(server.url, { words: `artifacts 60 ${10 * mebi}` });
        expect({ status, state: body.task?.status.state }).toEqual({ status: 200, state: "TASK_STATE_FAILED" });
        expect(await textLength(`${server.url}/tasks/${body.task?.id}`)).toMatchObject({ status: 200 });
        await other.answers(3);
      },
      allowance,
    );
  });
});

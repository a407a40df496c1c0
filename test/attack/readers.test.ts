import { describe, expect, it, vi } from "vitest";
import { mebi, newTask } from "./harness/bodies.ts";
import { Connection, head } from "./harness/connection.ts";
import { tasksOf } from "./harness/reading.ts";
import { servers } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";

/** Readers of one task, who do not read: its agent says 24 MiB, in chunks of 128 KiB. */

const words = `stream 192 ${128 * 1024}`;
const attacked = servers();

/** Waits until the task has said everything. */
async function spoken(url: string, task: string): Promise<void> {
  await vi.waitFor(async () => {
    const found = (await tasksOf(url)).find(({ id }) => id === task);
    expect(found?.status.state).toBe("TASK_STATE_COMPLETED");
  }, 60_000);
}

describe("readers who do not read", () => {
  it("40 over HTTP/1.1 cost what is bounded for each", async () => {
    const server = await attacked.start();
    await withstands(server, async (other) => {
      const task = await newTask(server.url, { words, returnImmediately: true });
      const readers = await Promise.all(
        Array.from({ length: 40 }, async () => {
          const reader = await Connection.to(server.port);
          reader.socket.pause();
          await reader.send(head(`/tasks/${task}:subscribe`, { "a2a-version": "1.0", "content-length": 0 }));
          return reader;
        }),
      );
      await other.answers(10);
      await spoken(server.url, task);
      await other.answers(3);
      for (const reader of readers) reader.close();
    });
  });

  it.each([["a list with a task of 24 MiB in it", () => "/tasks?includeArtifacts=true"]])(
    "40 who ask for %s cost what is bounded for all",
    async (_name, pathOf) => {
      const server = await attacked.start();
      await newTask(server.url, { words: `artifacts 24 ${mebi}` });
      await withstands(server, async (other) => {
        const readers = await Promise.all(
          Array.from({ length: 40 }, async () => {
            const reader = await Connection.to(server.port);
            reader.socket.pause();
            await reader.send(`GET ${pathOf()} HTTP/1.1\r\nHost: 127.0.0.1\r\nA2A-Version: 1.0\r\n\r\n`);
            return reader;
          }),
        );
        await other.answers(10);
        for (const reader of readers) reader.close();
      });
    },
  );
});

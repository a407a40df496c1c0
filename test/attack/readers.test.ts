import { connect as connectHttp2 } from "node:http2";
import { once } from "node:events";
import { describe, expect, it, vi } from "vitest";
import { mebi, newTask } from "./harness/bodies.ts";
import { Connection, head } from "./harness/connection.ts";
import { grpcCall } from "./harness/grpc.ts";
import { tasksOf } from "./harness/reading.ts";
import { servers, type Attacked } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";

/** Readers of one task, who do not read: its agent says 24 MiB, in chunks of 128 KiB. */

const words = `stream 192 ${128 * 1024}`;
const attacked = servers();

/** Has the agent speak, and waits until it has said everything. */
async function speak(server: Attacked, task: string): Promise<void> {
  await server.ask("speak");
  await vi.waitFor(async () => {
    const found = (await tasksOf(server.url)).find(({ id }) => id === task);
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
          // Its head, and no more.
          const begun = new Promise<unknown>((resolve) => reader.socket.once("data", resolve));
          await reader.send(head(`/tasks/${task}:subscribe`, { "a2a-version": "1.0", "content-length": 0 }));
          await begun;
          reader.socket.pause();
          return reader;
        }),
      );
      await speak(server, task);
      await other.answers(3);
      for (const reader of readers) reader.close();
    });
  });

  it("100 streams of gRPC with a window of 0 cost what is bounded for each", async () => {
    const server = await attacked.start();
    await withstands(server, async (other) => {
      const task = await newTask(server.url, { words, returnImmediately: true });
      const session = connectHttp2(server.url, { settings: { initialWindowSize: 0 } });
      session.on("error", () => {});
      await once(session, "connect");
      const { path, body } = grpcCall("SubscribeToTask", { id: task });
      const begun = Array.from({ length: 100 }, () => {
        const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
        const stream = session.request(headers).on("error", () => {});
        stream.end(body);
        return once(stream, "response");
      });
      await Promise.all(begun);
      await speak(server, task);
      await other.answers(3);
      session.destroy();
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

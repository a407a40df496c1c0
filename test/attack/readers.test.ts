import { connect as connectHttp2 } from "node:http2";
import { once } from "node:events";
import { describe, expect, it, vi } from "vitest";
import type { Message, Task } from "@parley/server";
import { mebi, newTask } from "./harness/bodies.ts";
import { Connection, head } from "./harness/connection.ts";
import { grpcCall } from "./harness/grpc.ts";
import { tasksOf } from "./harness/reading.ts";
import { servers, type Attacked } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";

/* Clients request large responses and do not read them. An agent streams 24 MiB in chunks of 128 KiB. */

const words = `stream 192 ${128 * 1024}`;
const attacked = servers();

/** Makes the agent stream, and waits until the agent has ended. */
async function speak(server: Attacked, task: string): Promise<void> {
  await server.ask("speak");
  await vi.waitFor(async () => {
    const found = (await tasksOf(server.url)).find(({ id }) => id === task);
    expect(found?.status.state).toBe("TASK_STATE_COMPLETED");
  }, 60_000);
}

describe("clients that do not read", () => {
  it("hold at most the limit of each, 40 streams over HTTP/1.1", async () => {
    const server = await attacked.start();
    await withstands(server, async (other) => {
      const task = await newTask(server.url, { words, returnImmediately: true });
      const readers = await Promise.all(
        Array.from({ length: 40 }, async () => {
          const reader = await Connection.to(server.port);
          // The client reads only the head.
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

  it("hold at most the limit of each, 100 gRPC streams with a window of 0", async () => {
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

  it.each<Question>([
    { name: "a task of 24 MiB", ask: (id) => get(`/tasks/${id}`) },
    { name: "a list with such a task in it", ask: () => get(`/tasks?includeArtifacts=true&contextId=${contextId}`) },
    { name: "a task over JSON-RPC", ask: (id) => post("/", "1.0", { method: "GetTask", params: { id } }) },
    { name: "a task in 0.3", ask: (id) => post("/", "0.3", { method: "tasks/get", params: { id } }) },
    { name: "a task in the draft of 1.1", ask: (id) => post("/", "1.1", { method: "GetTask", params: { id } }) },
    { name: "the stream of a task", ask: (id) => post(`/tasks/${id}:subscribe`, "1.0"), what: "unfinished" },
    {
      name: "the stream of a task in 0.3",
      ask: (id) => post("/", "0.3", { method: "tasks/resubscribe", params: { id } }),
      what: "unfinished",
    },
    {
      name: "a task by its message",
      ask: () => post("/message:send", "1.0", { message: theMessage("artifacts") }),
    },
  ])("hold at most the limit of all, 40 that ask for $name", async ({ ask, what = "artifacts" }) => {
    const server = await attacked.start();
    const task = await large(server, what);
    await withstands(server, async (other) => {
      const readers = await Promise.all(
        Array.from({ length: 40 }, async () => {
          const reader = await Connection.to(server.port);
          reader.socket.pause();
          await reader.send(ask(task));
          return reader;
        }),
      );
      await other.answers(10);
      for (const reader of readers) reader.close();
    });
  });

  it.each([
    ["a task of 24 MiB", "GetTask", "artifacts"],
    ["the stream of a task", "SubscribeToTask", "unfinished"],
  ] as const)(
    "hold at most the limit of all, 40 gRPC connections with a window of 0 that ask for %s",
    async (_name, operation, what) => {
      const server = await attacked.start();
      const task = await large(server, what);
      await withstands(server, async (other) => {
        const { path, body } = grpcCall(operation, { id: task });
        const sessions = await Promise.all(
          Array.from({ length: 40 }, async () => {
            const session = connectHttp2(server.url, { settings: { initialWindowSize: 0 } });
            session.on("error", () => {});
            await once(session, "connect");
            const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
            session
              .request(headers)
              .on("error", () => {})
              .end(body);
            return session;
          }),
        );
        await other.answers(10);
        for (const session of sessions) session.destroy();
      });
    },
  );

  it("make events of 8 MiB wait for memory, as tasks do", async () => {
    const server = await attacked.start();
    await withstands(server, async (other) => {
      const task = await newTask(server.url, { words: `stream 3 ${8 * mebi}`, returnImmediately: true });
      const readers = await Promise.all(
        Array.from({ length: 40 }, async () => {
          const reader = await Connection.to(server.port);
          const begun = new Promise<unknown>((resolve) => reader.socket.once("data", resolve));
          await reader.send(post(`/tasks/${task}:subscribe`, "1.0"));
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

  it("do not prevent others from getting the whole task, or a Retry-After", async () => {
    const server = await attacked.start();
    const task = await large(server, "artifacts");
    await withstands(server, async () => {
      const headers = { "a2a-version": "1.0" };
      const answers = await Promise.all(
        Array.from({ length: 40 }, async () => {
          const answer = await fetch(`${server.url}/tasks/${task}`, { headers });
          let length = 0;
          for await (const piece of answer.body ?? []) length += (piece as Uint8Array).length;
          return { status: answer.status, again: answer.headers.get("retry-after"), length };
        }),
      );
      const whole = answers.filter(({ status }) => status === 200);
      expect(whole.length).toBeGreaterThan(0);
      expect(whole.filter(({ length }) => length < 24 * mebi)).toEqual([]);
      const others = answers.filter(({ status }) => status !== 200);
      expect(others.filter(({ status, again }) => status !== 503 || again !== "5")).toEqual([]);
    });
  });
});

interface Question {
  readonly name: string;
  /** Returns the bytes of the request. */
  ask(task: string): string;
  /** Which large task the agent creates. */
  readonly what?: "artifacts" | "unfinished";
}

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nA2A-Version: 1.0\r\n\r\n`;
}

function post(path: string, version: string, body?: object): string {
  const rpc = path === "/" ? { jsonrpc: "2.0", id: 1 } : {};
  const text = body === undefined ? "" : JSON.stringify({ ...rpc, ...body });
  const type = { "content-type": "application/json", "a2a-version": version };
  return head(path, { ...type, "content-length": text.length }) + text;
}

/** This context contains only the large task, so that the list of its tasks contains no other task. */
const contextId = "large";

/** Returns the same message for all callers, so that each repetition gets the first response. */
function theMessage(what: string): Message {
  return { messageId: "large", contextId, role: "ROLE_USER", parts: [{ text: `${what} 24 ${mebi}` }] };
}

/** Creates a task with artifacts of 24 MiB. */
async function large(server: Attacked, what: "artifacts" | "unfinished"): Promise<string> {
  const answer = await fetch(`${server.url}/message:send`, {
    method: "POST",
    headers: { "content-type": "application/json", "a2a-version": "1.0" },
    body: JSON.stringify({ message: theMessage(what), ...(what === "unfinished" && atOnce) }),
  });
  const { task } = (await answer.json()) as { task: Task };
  await vi.waitFor(async () => {
    const found = await fetch(`${server.url}/tasks/${task.id}`, { headers: { "a2a-version": "1.0" } });
    const { artifacts = [] } = (await found.json()) as Task;
    expect(artifacts.length).toBe(24);
  }, 60_000);
  return task.id;
}

const atOnce = { configuration: { returnImmediately: true } };

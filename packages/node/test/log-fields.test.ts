import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { A2AError, defineAgent, type Agent } from "@parley/server";
import type { Logger } from "@parley/a2a/protocol";
import type { LogFields } from "@parley/a2a/internal/base/index";
import { defineExtension } from "@parley/a2a/extensions";
import { sqliteStore } from "@parley/sql/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { collect } from "../../../test/secrets.ts";
import { connect, serve, type ServeOptions } from "../src/index.ts";

/* An operator can follow a task through the log, because every line about the task has its id, its context and the trace of the call. */

const traceId = "0af7651916cd43dd8448eb211c80319c";
const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };

interface Line extends LogFields {
  readonly message: string;
}

function collecting(): { readonly logger: Logger; readonly lines: Line[] } {
  const lines: Line[] = [];
  const write = (message: string, fields: LogFields = {}): void => {
    collect(message, fields);
    lines.push({ ...fields, message });
  };
  return { lines, logger: { debug: write, info: write, warn: write, error: write } };
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "parley-log-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function serving(agent: Agent, more: Partial<ServeOptions> = {}, path?: string) {
  const { logger, lines } = collecting();
  const store = await sqliteStore({ path: join(path ?? (await folder()), "tasks.db") });
  const server = await serve(agent, { port: 0, grpc: true, signals: false, store, logger, ...more });
  const close = async (): Promise<void> => {
    await server.close({ grace: 0 });
    await store.close();
  };
  onTestFinished(close);
  return { server, lines, close, logged: (part: string) => lines.filter(({ message }) => message.includes(part)) };
}

const about = { name: "Clerk", description: "Works", version: "1.0.0", skills: [] } as const;

const broken = defineExtension({
  uri: "https://example.com/extensions/broken/v1",
  kind: "data",
  onAppend() {
    throw new Error("The hook is broken");
  },
});

describe("a log line about a task", () => {
  it("has the task, its context and the trace, in lines of the agent and its extensions, and of failures", async () => {
    const agent = defineAgent({
      ...about,
      extensions: [broken],
      async *onMessage(turn) {
        turn.logger.info("Looked into the archive", { shelf: 7 });
        yield turn.working("Looking");
        if (turn.text === "Fail") throw new Error("The archive is closed");
        yield turn.inputRequired("Which one?");
        yield turn.working("Looking again");
      },
    });
    const { server, lines, logged } = await serving(agent);
    const client = await connect(server.url, { headers, extensions: [broken] });
    for (const [text, line] of [
      ["Ask", "after turn.inputRequired()"],
      ["Fail", "A task failed"],
    ] as const) {
      lines.length = 0;
      const { task } = await client.sendMessage(text);
      const own = { agent: "/", taskId: task?.id, contextId: task?.contextId, traceId };
      await expect.poll(() => logged(line).length).toBeGreaterThan(0);
      expect(logged("Looked into the archive")).toMatchObject([{ shelf: 7, ...own }]);
      expect(logged("Extension hook failed").length).toBeGreaterThan(0);
      for (const each of lines) expect(each).toMatchObject(own);
    }
  });

  it("has them if a request failed, on every binding", async () => {
    const agent = defineAgent({
      ...about,
      async *onMessage(turn) {
        yield turn.inputRequired("Which one?");
      },
    });
    const { server, logged } = await serving(agent, {
      interceptors: [
        (service) => ({
          ...service,
          call(operation, request, context) {
            if (operation === "CancelTask") throw new A2AError("InternalError", "The archive is closed");
            return service.call(operation, request, context);
          },
        }),
      ],
    });
    for (const binding of ["JSONRPC", "HTTP+JSON", "GRPC"] as const) {
      const client = await connect(server.url, { headers, binding });
      const { task } = await client.sendMessage("Look it up");
      await expect(client.cancelTask(task?.id ?? "")).rejects.toMatchObject({ code: "InternalError" });
      expect(logged("A request failed").at(-1)).toMatchObject({ binding, taskId: task?.id, traceId });
    }
  });

  it("has them if a webhook is rejected and parked", async () => {
    const receiver = createServer((_incoming, response) => response.writeHead(400).end());
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void receiver.close());
    const agent = defineAgent({
      ...about,
      async *onMessage(turn) {
        yield turn.working("Looking");
      },
    });
    const { server, logged } = await serving(agent, { push: {} });
    const client = await connect(server.url, { headers });
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    const { task } = await client.sendMessage({
      message: "Look it up",
      configuration: { taskPushNotificationConfig: { url } },
    });
    const own = { taskId: task?.id, contextId: task?.contextId, traceId };
    await expect.poll(() => logged("Webhook receiver rejected event").length).toBeGreaterThan(0);
    for (const line of logged("webhook").filter(({ taskId }) => taskId !== undefined)) expect(line).toMatchObject(own);
    expect(logged("Webhook receiver rejected event")[0]).toMatchObject(own);
  });

  it("has them if another process resumes the task", async () => {
    const path = await folder();
    let begun: () => void = () => {};
    const waits = new Promise<void>((resolve) => (begun = resolve));
    const agent = (work: () => Promise<void>): Agent =>
      defineAgent({
        ...about,
        resumable: true,
        async *onMessage(turn) {
          yield turn.working("Looking");
          await turn.flush();
          await work();
          turn.logger.info("Looked into the archive");
        },
      });
    const first = await serving(
      agent(() => (begun(), new Promise<never>(() => {}))),
      {},
      path,
    );
    const client = await connect(first.server.url, { headers });
    const { task } = await client.sendMessage({ message: "Look it up", configuration: { returnImmediately: true } });
    await waits;
    await first.close();
    const second = await serving(
      agent(() => Promise.resolve()),
      {},
      path,
    );
    const own = { agent: "/", taskId: task?.id, contextId: task?.contextId, traceId };
    await expect.poll(() => second.logged("Looked into the archive")).toMatchObject([own]);
    for (const line of second.logged("A task ")) expect(line).toMatchObject(own);
  });
});

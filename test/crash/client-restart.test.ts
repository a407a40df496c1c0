import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, type ConnectOptions } from "@parley/a2a";
import type { ObservedRetry } from "@parley/a2a/internal/protocol/index";
import { grpcBinding } from "@parley/grpc/client";
import { afterAll, expect, test, vi } from "vitest";
import { diskFolder } from "../temporary.ts";
import { reservePort, Supervisor } from "./supervisor.ts";

const folder = await mkdtemp(join(diskFolder(), "parley-restarted-"));
const script = fileURLToPath(new URL("restarted-server.ts", import.meta.url));
const server = new Supervisor(join(folder, "server.db"), await reservePort(), script);
afterAll(async () => {
  server.stop();
  await rm(folder, { recursive: true });
});

test("a client with default options survives a SIGKILL: over every binding reads, sends, streams and connect() wait for the next process", async () => {
  const life = await server.start();
  const bindings = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;
  const retries = new Map<string, ObservedRetry[]>();
  const told = (who: string): ConnectOptions => ({
    bindings: [grpcBinding()],
    observer: { retry: (retry) => void (retries.get(who) ?? retries.set(who, []).get(who))?.push(retry) },
  });
  const clients = await Promise.all(
    bindings.map(async (binding) => {
      const who = { ...told(binding), binding };
      const client = await connect(server.url, who);
      const { task } = await client.sendMessage("ask");
      return { binding, client, id: task?.id ?? "" };
    }),
  );

  life.kill("SIGKILL");
  await life.end;
  const works = clients.flatMap(({ client, id }) => [
    client.getTask(id),
    client.sendMessage("again").then(({ task }) => task),
    (async () => {
      let state;
      for await (const { task } of client.sendStreamingMessage("a stream")) state ??= task;
      return state;
    })(),
  ]);
  const connecting = connect(server.url, told("connect"));
  // Longer than three attempts with half a second in between.
  await vi.waitFor(() => {
    for (const each of [...bindings, "connect"])
      expect(Math.max(...(retries.get(each) ?? []).map(({ attempt }) => attempt))).toBeGreaterThan(4);
  });
  await server.start();

  const tasks = await Promise.all(works);
  expect(tasks.map((task) => task?.id)).not.toContain(undefined);
  expect((await connecting).card.name).toBe("Clerk");
  for (const { client } of clients) {
    const { tasks: all } = await client.listTasks({ includeArtifacts: true });
    const answers = all.flatMap(({ artifacts = [] }) => artifacts.map(({ parts }) => parts[0]?.text ?? ""));
    // Each send took effect once, despite the retries.
    expect(answers.toSorted()).toEqual([
      ...Array<string>(3).fill("answer to a stream"),
      ...Array<string>(3).fill("answer to again"),
    ]);
  }
}, 60_000);

import { fork } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { webhookMemory, type WebhookMemory } from "@parley/a2a/webhooks";
import { sqliteWebhookMemory } from "../../src/sqlite/webhook-memory.ts";

const sender = "one";
const folder = mkdtempSync(join(tmpdir(), "parley-webhooks-"));
afterAll(() => rm(folder, { recursive: true, force: true }));
let files = 0;
const newFile = (): string => join(folder, `${(files += 1)}`, "webhooks.db");

const kinds: readonly (readonly [string, () => Promise<WebhookMemory>])[] = [
  ["in this process", () => Promise.resolve(webhookMemory())],
  ["in a file", () => sqliteWebhookMemory({ path: newFile() })],
];

describe.each(kinds)("a memory of webhooks %s", (_name, open) => {
  const delivery = { receiver: "https://a.example/hooks", sender: "one", id: "s_3", stream: "s", sequence: 3 };

  test("knows a handled delivery, and the highest number of its stream", async () => {
    const memory = await open();
    expect(await memory.recall(delivery)).toEqual({ seen: false });
    await memory.remember({ ...delivery, at: 1 });
    await memory.remember({ ...delivery, id: "s_2", sequence: 2, at: 2 });
    expect(await memory.recall(delivery)).toEqual({ seen: true, last: 3 });
    expect(await memory.recall({ ...delivery, id: "s_4", sequence: 4 })).toEqual({ seen: false, last: 3 });
    await memory.close?.();
  });

  test("keeps receivers and streams apart, and accepts ids without a stream", async () => {
    const memory = await open();
    await memory.remember({ receiver: "a", sender, id: "1", at: 1 });
    await memory.remember({ ...delivery, at: 1 });
    expect(await memory.recall({ receiver: "a", sender, id: "1" })).toEqual({ seen: true });
    expect(await memory.recall({ receiver: "b", sender, id: "1" })).toEqual({ seen: false });
    expect(await memory.recall({ ...delivery, stream: "other", id: "x" })).toEqual({ seen: false });
    await memory.close?.();
  });

  test("separates senders, who choose their own ids", async () => {
    const memory = await open();
    await memory.remember({ ...delivery, at: 1 });
    expect(await memory.recall({ ...delivery, sender: "other" })).toEqual({ seen: false });
    await memory.remember({ ...delivery, sender: "other", sequence: 9, at: 1 });
    expect(await memory.recall(delivery)).toEqual({ seen: true, last: 3 });
    await memory.close?.();
  });

  test("accepts a delivery that is remembered twice", async () => {
    const memory = await open();
    await memory.remember({ ...delivery, at: 1 });
    await memory.remember({ ...delivery, at: 2 });
    expect(await memory.recall(delivery)).toEqual({ seen: true, last: 3 });
    await memory.close?.();
  });
});

describe("a memory of webhooks in a file", () => {
  const receiver = "https://a.example/hooks";

  test("is visible to the next process, and to a concurrent one", async () => {
    const path = newFile();
    const [one, other] = [await sqliteWebhookMemory({ path }), await sqliteWebhookMemory({ path })];
    await one.remember({ receiver, sender, id: "s_1", stream: "s", sequence: 1, at: 1 });
    expect(await other.recall({ receiver, sender, id: "s_1", stream: "s" })).toEqual({ seen: true, last: 1 });
    await Promise.all([one.close?.(), other.close?.()]);
    const next = await sqliteWebhookMemory({ path });
    expect(await next.recall({ receiver, sender, id: "s_1", stream: "s" })).toEqual({ seen: true, last: 1 });
    await next.close?.();
  });

  test("keeps its deliveries after the process was killed", async () => {
    const path = newFile();
    const program = join(folder, "program.mjs");
    const source = new URL("../../dist/sqlite/index.js", import.meta.url).href;
    writeFileSync(
      program,
      `import { sqliteWebhookMemory } from ${JSON.stringify(source)};
       const memory = await sqliteWebhookMemory({ path: ${JSON.stringify(path)} });
       for (let at = 1; ; at += 1) { await memory.remember({ receiver: "r", sender: "one", id: "s_" + at, stream: "s", sequence: at, at }); process.send(at); }`,
    );
    const child = fork(program, { execArgv: [] });
    const acknowledged = await new Promise<number>((resolve) => {
      child.on("message", (at) => {
        if (Number(at) === 50) child.kill("SIGKILL");
      });
      let last = 0;
      child.on("message", (at) => (last = Number(at)));
      child.on("close", () => resolve(last));
    });
    expect(acknowledged).toBeGreaterThanOrEqual(50);
    const memory = await sqliteWebhookMemory({ path });
    expect(await memory.recall({ receiver: "r", sender, id: `s_${acknowledged}`, stream: "s" })).toMatchObject({
      seen: true,
    });
    await memory.close?.();
  });

  test("forgets deliveries after `keep`", async () => {
    const memory = await sqliteWebhookMemory({ path: ":memory:", keep: 1000 });
    await memory.remember({ receiver, sender, id: "old", stream: "old", sequence: 1, at: 0 });
    for (let at = 1; at <= 300; at += 1) await memory.remember({ receiver, sender, id: `${at}`, at: 5000 });
    expect(await memory.recall({ receiver, sender, id: "old", stream: "old" })).toEqual({ seen: false });
    expect(await memory.recall({ receiver, sender, id: "300" })).toEqual({ seen: true });
    await memory.close?.();
  });

  test("stays within its bytes, and forgets the oldest", async () => {
    const memory = await sqliteWebhookMemory({ path: ":memory:", bytes: 512 << 10 });
    const id = (at: number): string => `${"x".repeat(200)}${at}`;
    for (let at = 1; at <= 8192; at += 1) await memory.remember({ receiver, sender, id: id(at), at });
    expect(await memory.recall({ receiver, sender, id: id(1) })).toEqual({ seen: false });
    expect(await memory.recall({ receiver, sender, id: id(8192) })).toEqual({ seen: true });
    let kept = 0;
    for (let at = 1; at <= 8192; at += 1) if ((await memory.recall({ receiver, sender, id: id(at) })).seen) kept += 1;
    // Each entry takes more than 200 bytes, and old entries are removed after 256 new ones.
    expect(kept).toBeLessThan((512 << 10) / 200 + 256);
    await memory.close?.();
  });

  test("a file that is invalid, and one of a later release, are rejected", async () => {
    const path = join(folder, "text.db");
    writeFileSync(path, "no database, but long enough to be read as one".repeat(100));
    await expect(sqliteWebhookMemory({ path })).rejects.toMatchObject({ code: "Unavailable" });
  });

  test("after close() every call rejects", async () => {
    const memory = await sqliteWebhookMemory({ path: newFile() });
    await memory.close?.();
    await expect(memory.recall({ receiver, sender, id: "1" })).rejects.toMatchObject({ code: "Unavailable" });
  });
});

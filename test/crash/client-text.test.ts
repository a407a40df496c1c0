import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@parley/a2a";
import { afterAll, expect, test, vi } from "vitest";
import { start } from "../../packages/cli/test/support/parley.ts";
import { diskFolder } from "../temporary.ts";
import { reservePort, Supervisor } from "./supervisor.ts";

const folder = await mkdtemp(join(diskFolder(), "parley-text-"));
const path = join(folder, "server.db");
await writeFile(`${path}.lives`, "0");
const server = new Supervisor(path, await reservePort(), fileURLToPath(new URL("text-server.ts", import.meta.url)));
afterAll(async () => {
  server.stop();
  await rm(folder, { recursive: true });
});

const before = "It is certain ";
const cases = {
  same: { text: "It is certain and it is so.", resets: 0 },
  other: { text: "It is doubtful at best.", resets: 1 },
  less: { text: "It is ", resets: 1 },
};

test("after a kill -9 in mid-stream the displayed text equals the text of the artifact, whatever the model says then", async () => {
  const life = await server.start();
  const client = await connect(server.url);
  const read = Object.entries(cases).map(([how, expected]) => {
    const reader = { how, expected, shown: "", resets: 0, events: "" };
    const stream = client.sendStreamingMessage(how, {}, ({ artifactUpdate }) => {
      for (const { text } of artifactUpdate?.artifact.parts ?? []) reader.events += text ?? "";
    });
    const done = (async () => {
      for await (const { text, reset } of stream.text()) {
        reader.shown = reset ? text : reader.shown + text;
        if (reset) reader.resets += 1;
      }
      return stream.status?.state;
    })();
    return { reader, done };
  });
  // The command line prints in the same way.
  const printed = start(["send", server.url, "same"]);
  const overwritten = start(["send", server.url, "other"]);
  await vi.waitFor(() => expect(read.map(({ reader }) => reader.shown)).toEqual(Array(3).fill(before)));
  await Promise.all([printed, overwritten].map((each) => each.until("out", /It is certain /)));
  life.kill("SIGKILL");
  await life.end;
  await server.start();

  for (const { reader, done } of read) {
    expect(await done).toBe("TASK_STATE_COMPLETED");
    const { text, resets } = reader.expected;
    expect({ how: reader.how, text: reader.shown, resets: reader.resets }).toEqual({ how: reader.how, text, resets });
    // A client that prints every update prints the beginning twice.
    expect(reader.events).toBe(before + text);
  }
  const { tasks } = await client.listTasks({ includeArtifacts: true });
  const stored = tasks.map(({ artifacts }) => artifacts?.[0]?.parts.map((part) => part.text).join("") ?? "");
  expect(new Set(stored)).toEqual(new Set(Object.values(cases).map(({ text }) => text)));

  expect((await printed.done).out.trimEnd()).toBe(cases.same.text);
  const { out, err } = await overwritten.done;
  expect(out.trimEnd()).toBe(`${before}\n${cases.other.text}`);
  expect(err).toContain("replaced");
}, 60_000);

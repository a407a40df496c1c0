import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startOfficialEcho } from "./support/official.ts";
import { parleyHere } from "./support/in-process.ts";
import { start } from "./support/parley.ts";

/** Every command against the official SDK's server. */

let official: Awaited<ReturnType<typeof startOfficialEcho>>;
let url = "";
beforeAll(async () => {
  // The SDK's server logs every error answer to the console.
  vi.spyOn(console, "error").mockImplementation(() => {});
  official = await startOfficialEcho();
  url = official.url;
});
afterAll(async () => {
  vi.restoreAllMocks();
  await official.close();
});

describe.each(["JSONRPC", "HTTP+JSON"])("the official SDK's server over %s", (binding) => {
  const call = (command: string, ...args: string[]) => parleyHere([command, url, ...args, "--binding", binding]);

  test("is described by its card", async () => {
    const { code, out } = await call("card");
    expect(code).toBe(0);
    expect(out).toContain("Official 1.0.0\nRuns on the official SDK.\n");
    expect(out).toContain(`HTTP+JSON 1.0  ${url}/rest`);
  });

  test("streams an answer", async () => {
    const { code, out, err } = await call("send", "hello");
    expect({ code, out }).toEqual({ code: 0, out: "You said hello\n" });
    expect(err).toContain("● working  On it\n◆ echo\n✓ completed\n");
  });

  test("gives one answer if no stream is requested", async () => {
    expect(await call("send", "hello", "--no-stream")).toMatchObject({ code: 0, out: "You said hello\n" });
  });

  test("answers with a plain message", async () => {
    expect(await call("send", "reply")).toEqual({ code: 0, out: "Just a word.\n", err: "" });
  });

  test("keeps a task that asks a question, and accepts the answer", async () => {
    const asked = await call("send", "ask");
    expect(asked).toMatchObject({ code: 0, out: "Which?\n" });
    const [, id = ""] = /--task (\S+)/.exec(asked.err) ?? [];
    expect(await call("task", id, "--json")).toMatchObject({ code: 0, err: "" });
    expect(await call("send", "this", "--task", id)).toMatchObject({ code: 0, out: "You said this\n" });
    expect(await call("watch", id)).toMatchObject({ code: 0, out: "You said this\n" });
  });

  test("lists, watches and cancels", async () => {
    const started = await call("send", "hang", "--no-wait", "--json");
    expect(started.code).toBe(0);
    const { id, contextId } = (JSON.parse(started.out) as { task: { id: string; contextId: string } }).task;
    const watching = start(["watch", url, id, "--binding", binding, "--json"]);
    await watching.until("out", /TASK_STATE_WORKING/);
    const listed = await call("tasks", "--context", contextId, "--json");
    expect(JSON.parse(listed.out)).toMatchObject({ tasks: [{ id }], totalSize: 1 });
    expect(await call("cancel", id)).toMatchObject({ code: 0 });
    const watched = await watching.done;
    expect(watched.code).toBe(1);
    expect(watched.out).toContain("TASK_STATE_CANCELED");
  });
});

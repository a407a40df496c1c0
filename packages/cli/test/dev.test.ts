import { once } from "node:events";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@parley/a2a";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { reservePort } from "../../../test/ports.ts";
import { parleyHere } from "./support/in-process.ts";
import { start, type Running } from "./support/parley.ts";

/** `parley dev`: a module that is served anew when it changes. */

let folder = "";
let running: Running | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-dev-"));
  await symlink(fileURLToPath(new URL("../../../node_modules", import.meta.url)), join(folder, "node_modules"));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
});
afterEach(async () => {
  if (running !== undefined && running.child.exitCode === null) {
    running.child.kill("SIGKILL");
    await running.done;
  }
  running = undefined;
  await rm(folder, { recursive: true });
});

/** An agent that replies `word`; asked to wait, it ends its task once the file `go` exists. */
const agent = (word: string): string => `
  import { existsSync } from "node:fs";
  import { defineAgent, text } from "@parley/server";
  export default defineAgent({
    name: "Word", description: "Says a word.", version: "1.0.0", skills: [],
    async *onMessage(turn) {
      yield turn.artifact({ artifactId: "word", parts: [text("${word}")] });
      while (turn.text === "wait" && !existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
      yield turn.artifact({ artifactId: "again", parts: [text("${word}")] });
    },
  });`;

const save = (code: string): Promise<void> => writeFile(join(folder, "agent.ts"), code);

async function sayAt(url: string): Promise<string | undefined> {
  const { task } = await (await connect(url)).sendMessage("now");
  return task?.artifacts?.[1]?.parts[0]?.text;
}

test("serves the new version as soon as it loads, while tasks finish in the version that they began with", async () => {
  await save(agent("one"));
  const port = await reservePort();
  const url = `http://127.0.0.1:${port}`;
  running = start(["dev", "agent.ts", "--port", String(port)], { cwd: folder });
  await running.until("out", /is ready at/);

  const words: (string | undefined)[] = [];
  const client = await connect(url);
  const stream = client.sendStreamingMessage("wait");
  for (let event = await stream.next(); event.value?.artifactUpdate === undefined; event = await stream.next());
  await save("export default 1 +;");
  await running.until("err", /Still serving the previous version\. Waiting for a change\./);
  expect(await sayAt(url)).toBe("one");

  await save(agent("two"));
  await running.until("out", /is ready at[^]*is ready at/);
  expect(await sayAt(url)).toBe("two");
  await writeFile(join(folder, "go"), "");
  for await (const { artifactUpdate } of stream) words.push(artifactUpdate?.artifact.parts[0]?.text);
  expect(words.filter((word) => word !== undefined)).toEqual(["one"]);

  running.child.kill("SIGINT");
  expect((await running.done).code).toBe(0);
});

test.each([
  ["prints the link of the console", [], 200],
  ["serves no console with --no-console, and prints no link", ["--no-console"], 404],
  ["serves no console if callers need credentials", ["--api-key", "secret-of-a-caller"], 401],
] as const)("%s", async (_, args, status) => {
  await save(agent("one"));
  const port = await reservePort();
  running = start(["dev", "agent.ts", "--port", String(port), "--store", "memory", ...args], { cwd: folder });
  await running.until("out", status === 200 ? /Talk to it at \S+\n/ : /is ready at/);
  expect((await fetch(`http://127.0.0.1:${port}/console/`)).status).toBe(status);
  running.child.kill("SIGINT");
  const { code, out } = await running.done;
  expect(code).toBe(0);
  const link = `Talk to it at http://127.0.0.1:${port}/console/\n`;
  if (status === 200) expect(out).toContain(link);
  else expect(out).not.toContain("Talk to it at");
});

test("waits for a change if the module cannot be loaded at first, and ends with Ctrl-C", async () => {
  const port = await reservePort();
  await save("export default 1;");
  running = start(["dev", "agent.ts", "--port", String(port), "--store", "memory"], { cwd: folder });
  await running.until("err", /agent\.ts exports no agent[^]*Waiting for a change\./);
  await save(agent("one"));
  await running.until("out", /is ready at/);
  expect(await sayAt(`http://127.0.0.1:${port}`)).toBe("one");
  running.child.kill("SIGINT");
  expect((await running.done).code).toBe(0);
});

/** Resolves once no process has this id. */
const gone = (pid: number): Promise<void> =>
  vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), { interval: 50 });

/** Never yields, so its process handles nothing. */
const loop = 'console.log("pid " + process.pid + "."); for (;;);';

test("says why nothing is served, and leaves no process if it is killed while a module loops forever", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  await save(agent("one"));
  running = start(["dev", "agent.ts", "--port", String(port), "--store", "memory"], { cwd: folder });
  await running.until("err", /another process uses this port[^]*Waiting for a change\./);
  other.close();
  await save("process.exit(3);");
  await running.until("err", /The server exited with 3\.\nWaiting for a change\./);
  await save(loop);
  const [, pid] = await running.until("out", /pid (\d+)\./);
  running.child.kill("SIGKILL");
  await gone(Number(pid));
});

test("serves the correction of an agent that never yields, and ends such a module with Ctrl-C", async () => {
  const port = await reservePort();
  const url = `http://127.0.0.1:${port}`;
  await save(agent("one").replace("while (", "if (turn.text === 'loop') for (;;); while ("));
  running = start(["dev", "agent.ts", "--port", String(port), "--store", "memory"], { cwd: folder });
  await running.until("out", /is ready at/);
  const asked = (await connect(url, { retry: false })).sendMessage("loop").catch(() => undefined);
  const probe = (): Promise<unknown> => fetch(`${url}/healthz`, { signal: AbortSignal.timeout(200) });
  await vi.waitFor(() => expect(probe()).rejects.toThrow("aborted due to timeout"));
  await save(agent("two"));
  await running.until("out", /is ready at[^]*is ready at/);
  await asked;
  expect(await sayAt(url)).toBe("two");

  await save(loop);
  const [, pid] = await running.until("out", /pid (\d+)\./);
  running.child.kill("SIGINT");
  expect((await running.done).code).toBe(0);
  await gone(Number(pid));
});

test("rejects a port that would change with each restart", async () => {
  const { code, err } = await parleyHere(["dev", "agent.ts", "--port", "0"], { cwd: folder });
  expect(code).toBe(2);
  expect(err).toContain("--port must not be 0");
});

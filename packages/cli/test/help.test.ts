import { spawn } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bearer } from "@parley/a2a/auth";
import { cardKeySet, makeCardKey, signCard } from "@parley/a2a/cards";
import type { Server } from "@parley/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reservePort } from "../../../test/ports.ts";
import { createProgram, run } from "../src/program.ts";
import scripted from "./fixtures/agent.ts";
import { recordedIo } from "./support/io.ts";
import { parleyHere } from "./support/in-process.ts";
import { parleyCommand } from "./support/parley.ts";
import { startServer } from "./support/server.ts";
import { parked, storeWebhooks } from "./support/webhooks.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
/** The words of every command: `push`, `push list`. */
const commands = createProgram(recordedIo().io, () => {}).commands.flatMap((command) => [
  [command.name()],
  ...command.commands.map((part) => [command.name(), part.name()]),
]);

async function help(...command: string[]): Promise<string> {
  const { io, out } = recordedIo();
  expect(await run([...command, "--help"], io)).toBe(0);
  return out();
}

describe("docs/cli.md", () => {
  test("shows the help of every command as it is", async () => {
    const text = await readFile(join(root, "docs", "cli.md"), "utf8");
    const blocks = [...text.matchAll(/^```text\n([^]*?)^```$/gm)].map((found) => found[1]);
    const helps = [await help()];
    for (const words of commands) helps.push(await help(...words));
    expect(blocks).toEqual(helps);
  });
});

describe("every example of the help runs", () => {
  let server: Server;
  /** One that has to be logged in to. */
  let guarded: Server;
  let folder = "";

  beforeAll(async () => {
    server = await startServer(scripted, { push: true });
    guarded = await startServer(scripted, { authenticator: bearer({ s3cret: { subject: "ada" } }) });
    folder = await mkdtemp(join(tmpdir(), "parley-help-"));
    await mkdir(join(folder, "bin"));
    const shim = join(folder, "bin", "parley");
    await writeFile(shim, `#!/bin/sh\nexec ${parleyCommand.map((word) => `'${word}'`).join(" ")} "$@"\n`);
    await chmod(shim, 0o755);
    await symlink(join(root, "node_modules"), join(folder, "node_modules"));
    await cp(fileURLToPath(new URL("./fixtures/agent.ts", import.meta.url)), join(folder, "agent.ts"));
    await mkdir(join(folder, "src"));
    await mkdir(join(folder, "prompts"));
    await cp(join(folder, "agent.ts"), join(folder, "src", "agent.ts"));
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    await writeFile(join(folder, "form.json"), '{ "city": "Basel" }');
    await cp(join(root, "node_modules", "vega-datasets", "data", "weather.csv"), join(folder, "weather.csv"));
    const key = await makeCardKey();
    const url = "https://agent.example/";
    const card = {
      name: "Card",
      description: "A card.",
      version: "1.0.0",
      supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
      capabilities: {},
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
      skills: [],
    };
    const files = { "card.json": card, "card-key.json": key, "card-keys.json": await cardKeySet([key]) };
    const all = { ...files, "signed.json": await signCard(card, key) };
    for (const [name, value] of Object.entries(all)) await writeFile(join(folder, name), JSON.stringify(value));
    await storeWebhooks(join(folder, ".parley", "parley.db"), { parked: { ...parked, task: { taskId: "stored" } } });
  });
  afterAll(async () => {
    await server.close({ grace: 0 });
    await guarded.close({ grace: 0 });
    await rm(folder, { recursive: true });
  });

  /** Runs a line in a shell; one that serves is stopped once it is ready. */
  function shell(line: string): Promise<{ code: number | null; err: string }> {
    const child = spawn("sh", ["-c", line], {
      cwd: folder,
      env: {
        ...process.env,
        XDG_CONFIG_HOME: folder,
        PARLEY_KEYCHAIN: "off",
        PATH: `${join(folder, "bin")}:${process.env["PATH"]}`,
      },
    });
    let err = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (text.includes(" is ready at ")) child.kill("SIGTERM");
    });
    child.stdin.end();
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => resolve({ code, err }));
    });
  }

  /** What a line does that needs no shell, in this process; else what it does in one. */
  async function runLine(line: string): Promise<{ code: number | null | undefined; err: string }> {
    if (/[|>]|^exec /.test(line)) return shell(line);
    const words = [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, ...kinds]) => kinds.join(""));
    expect(words.shift()).toBe("parley");
    return parleyHere(words, { cwd: folder, env: { XDG_CONFIG_HOME: folder } });
  }

  /** A task for an example: one to cancel is at work, others have ended. */
  async function taskFor(example: string): Promise<string> {
    const text = example.includes(" cancel ") ? "hang" : "stream";
    const { out } = await parleyHere(["send", server.url, text, "--no-wait", "--json"]);
    return (JSON.parse(out) as { task: { id: string } }).task.id;
  }

  test.each(commands.map((words) => words.join(" ")))("parley %s", async (name) => {
    const examples = [...(await help(...name.split(" "))).matchAll(/^ {2}\$ (.*)$/gm)].map((found) => found[1] ?? "");
    expect(examples).not.toEqual([]);
    for (const example of examples) {
      let line = example.replaceAll("http://localhost:4000", name === "login" ? guarded.url : server.url);
      if (line.includes(" push ")) line = line.replace("TASK", "stored").replace("WEBHOOK", "parked");
      if (line.includes(" TASK")) line = line.replace("TASK", await taskFor(line));
      // They need PostgreSQL: test/cluster/db-command.test.ts runs them.
      if (name.startsWith("db")) continue;
      // Any free port, whatever the example says; and no shell in between that would keep the signal.
      // A user has to do the rest in a browser.
      if (line.includes("--client-id")) continue;
      if (name === "serve") line = `exec ${line} --port 0`;
      if (name === "dev") line = `exec ${line.replace(/ --port \d+/, "")} --port ${await reservePort()}`;
      expect(await runLine(line), example).toMatchObject({ code: 0 });
    }
  });
});

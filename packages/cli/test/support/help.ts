import { spawn } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bearer } from "@parley/a2a/auth";
import { cardKeySet, makeCardKey, signCard } from "@parley/a2a/cards";
import type { Server } from "@parley/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reservePort } from "../../../../test/ports.ts";
import { createProgram, run } from "../../src/program.ts";
import scripted from "../fixtures/agent.ts";
import { recordedIo } from "./io.ts";
import { parleyHere } from "./in-process.ts";
import { parleyCommand } from "./parley.ts";
import { startServer } from "./server.ts";
import { parked, storeWebhooks } from "./webhooks.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
/** The words of every command: `push`, `push list`. */
export const commands = createProgram(recordedIo().io, () => {}).commands.flatMap((command) => [
  [command.name()],
  ...command.commands.map((part) => [command.name(), part.name()]),
]);

export async function help(...command: string[]): Promise<string> {
  const { io, out } = recordedIo();
  expect(await run([...command, "--help"], io)).toBe(0);
  return out();
}

/** The examples of each command. */
export const examples: readonly { readonly command: string; readonly line: string }[] = await examplesOf();

async function examplesOf(): Promise<{ command: string; line: string }[]> {
  const found: { command: string; line: string }[] = [];
  for (const words of commands) {
    const lines = [...(await help(...words)).matchAll(/^ {2}\$ (.*)$/gm)].map(([, line = ""]) => line);
    // A user must finish a login in a browser.
    for (const line of lines) if (!line.includes("--client-id")) found.push({ command: words.join(" "), line });
  }
  return found;
}

/** Whether an example is a line of a shell, or serves until it is stopped. */
function needsShell(command: string, line: string): boolean {
  return /[|>]/.test(line) || ["serve", "dev", "inspect", "mcp"].includes(command) || line.includes(" --follow");
}

/**
 * Runs every example of the help: those that need a shell or a separate process, or the others.
 *
 * @param inShell - Which of them.
 */
export function helpExamples(inShell: boolean): void {
  let server: Server;
  /** One that requires a login. */
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
    await cp(fileURLToPath(new URL("../fixtures/agent.ts", import.meta.url)), join(folder, "agent.ts"));
    await mkdir(join(folder, "src"));
    await mkdir(join(folder, "prompts"));
    await cp(join(folder, "agent.ts"), join(folder, "src", "agent.ts"));
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    await writeFile(join(folder, "form.json"), '{ "city": "Basel" }');
    await writeFile(join(folder, "agent.log"), '{ "message": "Echo is ready at http://localhost:4000" }\n');
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

  /** Runs a line that needs no shell, in this process. */
  async function inProcess(line: string): Promise<{ code: number | null | undefined; err: string }> {
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

  // Those of `db` need PostgreSQL: test/cluster/db-command.test.ts runs them. Those of operators are run by ops.test.ts.
  const some = examples.filter(
    ({ command, line }) => !/^(?:db|ops|top)\b/.test(command) && needsShell(command, line) === inShell,
  );
  test.each(some)("$line", async ({ command, line: example }) => {
    let line = example.replaceAll("http://localhost:4000", command === "login" ? guarded.url : server.url);
    if (line.includes(" push ")) line = line.replace("TASK", "stored").replace("WEBHOOK", "parked");
    if (line.includes(" TASK")) line = line.replace("TASK", await taskFor(line));
    // Any free port, whatever the example says; and no shell in between that would swallow the signal.
    if (command === "serve") line = `exec ${line} --port 0`;
    if (command === "mcp") line = `exec ${line.replace(/--http \d+/, "--http 0")}`;
    if (line.includes(" --follow")) line = `exec ${line}`;
    if (command === "inspect") line = `exec ${line.replace(" --no-open", "")} --no-open`;
    if (command === "dev") line = `exec ${line.replace(/ --port \d+/, "")} --port ${await reservePort()}`;
    expect(await (inShell ? shell(line) : inProcess(line))).toMatchObject({ code: 0 });
  });
}

import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { connect } from "@parley/a2a";
import { bearerToken } from "@parley/a2a/credentials";
import { WorkerdWorker } from "./workerd.ts";

/** Runs the programs of docs/workers.md in workerd, unchanged. */

const workers = "docs/workers.md";
const root = join(import.meta.dirname, "../..");
let folder: string;
let page: string;

beforeAll(async () => {
  await mkdir(join(root, "node_modules", ".parley-docs"), { recursive: true });
  folder = await mkdtemp(join(root, "node_modules", ".parley-docs", "workers-"));
  page = await readFile(join(root, workers), "utf8");
});
afterAll(() => rm(folder, { recursive: true }));

function block(fence: string): string {
  const code = page.split(`\n\`\`\`${fence === "jsonc" ? fence : `ts ${fence}`}\n`)[1]?.split("\n```\n")[0];
  if (code === undefined) throw new Error(`The page has no block ${fence}`);
  return code;
}

async function started(
  code: string,
  classes: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<WorkerdWorker> {
  const file = join(folder, `worker-${classes.length}.ts`);
  await writeFile(file, code);
  const worker = await WorkerdWorker.create(file, classes, env);
  onTestFinished(() => worker.remove());
  await worker.start();
  return worker;
}

interface Wrangler {
  readonly main: string;
  readonly compatibility_date: string;
  readonly compatibility_flags?: readonly string[];
  readonly durable_objects: { readonly bindings: readonly { readonly name: string; readonly class_name: string }[] };
  readonly migrations: readonly { readonly new_sqlite_classes: readonly string[] }[];
  readonly vars: Readonly<Record<string, string>>;
}

/** Parses JSON with trailing commas. */
const wrangler = (): Wrangler => JSON.parse(block("jsonc").replaceAll(/,(\s*[}\]])/g, "$1")) as Wrangler;

describe("the Durable Object of the page", () => {
  it("is configured as its program expects", () => {
    const code = block("object");
    const { durable_objects, migrations, vars, main, compatibility_flags } = wrangler();
    const [binding] = durable_objects.bindings;
    expect(binding).toEqual({ name: "AGENTS", class_name: "Agents" });
    expect(migrations.flatMap((migration) => migration.new_sqlite_classes)).toEqual(["Agents"]);
    expect(code).toContain("export class Agents extends DurableObject");
    for (const name of Object.keys(vars)) expect(code).toContain(`env.${name}`);
    expect(page).toContain(`Save them as \`${main}\``);
    expect(compatibility_flags).toBe(undefined);
  });

  it("keeps the tasks of each caller in an object of its own, through a crash in the middle of a stream", async () => {
    const tokens = { "token-of-ada": "ada", "token-of-bob": "bob" };
    const worker = await started(block("object"), ["Agents"], { TOKENS: JSON.stringify(tokens) });
    const of = (token: string) => connect(worker.url, { credentials: [bearerToken(token)] });
    const [ada, bob] = [await of("token-of-ada"), await of("token-of-bob")];
    const found: string[] = [];
    let id = "";
    for await (const { task, artifactUpdate } of ada.sendStreamingMessage("the south field")) {
      id ||= task?.id ?? "";
      if (artifactUpdate === undefined) continue;
      found.push(artifactUpdate.artifact.artifactId);
      if (found.length !== 3) continue;
      await worker.kill();
      await worker.start();
    }
    expect(found).toEqual(Array.from({ length: 10 }, (_, at) => `strip-${at + 1}`));
    expect((await ada.getTask(id)).status.state).toBe("TASK_STATE_COMPLETED");
    expect((await ada.listTasks()).totalSize).toBe(1);
    expect((await bob.listTasks()).totalSize).toBe(0);
    await expect(bob.getTask(id)).rejects.toMatchObject({ code: "TaskNotFound" });
  });

  it("takes no caller from a client's header, and shows its card to anyone", async () => {
    const worker = await started(block("object"), ["Agents"], { TOKENS: '{"token-of-ada":"ada"}' });
    expect((await fetch(`${worker.url}/.well-known/agent-card.json`)).status).toBe(200);
    const headers = { "x-caller": "ada", "a2a-version": "1.0" };
    expect((await fetch(`${worker.url}/tasks`, { headers })).status).toBe(401);
    const known = { authorization: "Bearer token-of-ada", "a2a-version": "1.0" };
    expect((await fetch(`${worker.url}/tasks`, { headers: known })).status).toBe(200);
  });
});

describe("the plain Worker of the page", () => {
  it("answers requests, and its cron trigger wakes it", async () => {
    await writeFile(join(folder, "plain.ts"), block("plain"));
    // The platform runs cron triggers. Here, a request calls the same function.
    const worker = await started(
      `import worker from "./plain.ts";
      export default {
        async fetch(request, env, ctx) {
          if (new URL(request.url).pathname !== "/cron") return worker.fetch(request, env, ctx);
          const waited = [];
          worker.scheduled({}, env, { waitUntil: (work) => waited.push(work) });
          return Response.json(await Promise.all(waited));
        },
      };`,
      [],
      {},
    );
    const message = { messageId: "1", role: "ROLE_USER", parts: [{ text: "hello" }] };
    const answer = await fetch(`${worker.url}/message:send`, {
      method: "POST",
      headers: { "content-type": "application/json", "a2a-version": "1.0" },
      body: JSON.stringify({ message }),
    });
    expect(await answer.json()).toMatchObject({ message: { parts: [{ text: "hello" }] } });
    expect(await (await fetch(`${worker.url}/cron`)).json()).toEqual([{}]);
  });
});

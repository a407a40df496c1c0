import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { jsonRpcBinding, memoryStore, restBinding, serve } from "@parley/node";
import { conform, failuresOf } from "@parley/conform";
import { expect, onTestFinished, test } from "vitest";
import { createAgent as travelAgent } from "../../examples/chat/agent.ts";
import { orderDesk } from "../../examples/dbos/agent.ts";
import { webSocketBinding } from "../../examples/websocket/src/server.ts";
import template from "../../packages/cli/templates/agent/agent.ts";
import { Program } from "./program.ts";

/* `parley conform URL` reports no problem with any example, nor with the agent of `parley init`. */

const folder = join(import.meta.dirname, "../../examples");

/** Examples that cannot run as a separate process here: one bundles its pages, one needs a database, and one ends on its own. */
const inProcess: Readonly<Record<string, () => ReturnType<typeof serve>>> = {
  chat: () => serve(travelAgent(1), { ...quiet, store: memoryStore() }),
  dbos: () =>
    serve(
      orderDesk(async () => {}),
      { ...quiet, store: memoryStore() },
    ),
  websocket: () =>
    serve(template, {
      ...quiet,
      store: memoryStore(),
      bindings: [jsonRpcBinding(), restBinding(), webSocketBinding()],
    }),
  "the template": () => serve(template, { ...quiet, store: memoryStore() }),
};
const quiet = { port: 0, signals: false, logger: false } as const;

const programs = readdirSync(folder)
  .filter((name) => !Object.hasOwn(inProcess, name))
  .map((name) => [name, ["main.ts", "src/main.ts"].map((file) => join(folder, name, file)).find(existsSync)] as const)
  .filter((each): each is readonly [string, string] => each[1] !== undefined);

/** The paths at which guides mount their agents. */
const paths: Readonly<Record<string, string>> = { "eight-ball": "/agents/eightball" };

async function check(url: string): Promise<void> {
  const report = await conform(url);
  expect(failuresOf(report)).toEqual([]);
  expect(report.verdict).toMatchObject({ result: "partial", broken: 0 });
  expect(report.verdict.asked).toBeGreaterThan(40);
}

test.each(programs)("%s passes the default run", async (name, path) => {
  const program = await Program.in(path);
  onTestFinished(() => program.end());
  await check(`${program.url}${paths[name] ?? ""}`);
});

test.each(Object.entries(inProcess))("%s passes the default run", async (_, start) => {
  const server = await start();
  onTestFinished(() => server.close({ grace: 0 }));
  await check(server.url);
});

test("covers every example", () => {
  const examples = readdirSync(folder).filter((name) => existsSync(join(folder, name, "package.json")));
  const asked = [...programs.map(([name]) => name), ...Object.keys(inProcess)];
  expect(asked).toEqual(expect.arrayContaining(examples));
});

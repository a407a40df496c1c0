import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { blocksOf, compile, room, root, run, start, write } from "./pages.ts";
import { reservePort } from "../ports.ts";

/** Runs programs of the documentation that need more setup than programs.test.ts provides. */

describe("docs/bindings.md", async () => {
  const blocks = await blocksOf("docs/bindings.md");
  const program = (wanted: string): string => blocks.find(({ role }) => role === wanted)?.code ?? "";
  it("serves a custom binding, and calls it", async () => {
    const port = String(await reservePort());
    const here = (code: string): string => code.replaceAll("4000", port);
    await start("bindings-server.mts", here(program("server")));
    const file = await compile("bindings-client.mts", here(program("client")));
    const { stdout } = await run(process.execPath, [file], { cwd: room });
    expect(stdout).toContain(`https://example.com/bindings/plain http://127.0.0.1:${port}/plain`);
    expect(stdout).toContain("TASK_STATE_COMPLETED");
  });

  it("passes the contract of bindings on both sides, as the page runs it", async () => {
    await compile("plain-server.mts", program("server").split("const agent = ")[0] ?? "");
    await compile("plain-client.mts", program("client").split("const kit = ")[0] ?? "");
    // The file is not named after the page, because another page's test runner would find the file here.
    const file = await compile("plain-suite.mts", program("test"));
    const { stdout } = await run(process.execPath, ["--test", "--test-reporter=tap", file], { cwd: room });
    expect(stdout).toMatch(/^# fail 0$/m);
    expect(stdout).toMatch(/^# pass [1-9]\d+$/m);
  });
});

describe("docs/client.md", async () => {
  const blocks = await blocksOf("docs/client.md");
  const clients = blocks.filter(({ role }) => role === "client");
  const said = [
    ["Cook JSONRPC", "TASK_STATE_COMPLETED"],
    ["GRPC 127.0.0.1:", "TASK_STATE_COMPLETED"],
    ["TASK_STATE_WORKING", "Dish for three", "up to 4"],
    ["Dish for three TASK_STATE_COMPLETED"],
    ["TASK_STATE_COMPLETED Dish for six"],
    ["TASK_STATE_COMPLETED\n", "1 artifacts", "true"],
    ["TASK_STATE_COMPLETED 1"],
    ["For how many?", "Dish for four"],
    ["There are five"],
    ["dish.txt undefined 12"],
    ["One soup, please!"],
    ["TaskNotFound"],
  ];
  it.each(clients.map(({ code }, at) => [at, code] as const))("program %i runs", async (at, code) => {
    const port = String(await reservePort());
    const here = (program: string): string => program.replaceAll("4000", port);
    await start(`cook-${at}.mts`, here(blocks.find(({ role }) => role === "server")?.code ?? ""));
    const { stdout } = await run(process.execPath, [await compile(`guest-${at}.mts`, here(code))], {
      cwd: room,
    });
    for (const words of said[at] ?? ["a program without expectations"]) expect(stdout).toContain(words);
  });
});

describe("docs/credentials.md", async () => {
  const blocks = await blocksOf("docs/credentials.md");
  const program = (wanted: string): string => blocks.find(({ role }) => role === wanted)?.code ?? "";
  it("chooses the credentials that the card requires", async () => {
    const port = String(await reservePort());
    const here = (code: string): string => code.replaceAll("4000", port);
    await start("credentials-server.mts", here(program("server")));
    const file = await compile("credentials-client.mts", here(program("client")));
    const { stdout } = await run(process.execPath, [file], { cwd: room });
    expect(stdout).toContain("You are ada");
  });
});

describe("docs/conform.md", async () => {
  const blocks = await blocksOf("docs/conform.md");
  const codeOf = (role: string): string => blocks.find((block) => block.role === role)?.code ?? "";

  it("the test for node:test passes", async () => {
    const file = await compile("conform.mts", codeOf("test"));
    // The program ends with an error if a test fails.
    const { stdout } = await run(process.execPath, [file], { cwd: room });
    expect(stdout).toContain("the server conforms to A2A");
  });

  it("the test for vitest passes, and the reports are written, for a server that runs", async () => {
    const port = String(await reservePort());
    const here = (role: string): string => codeOf(role).replaceAll("4000", port);
    const [server] = (await blocksOf("README.md")).filter(({ role }) => role === "server");
    await start("conform-server.mts", (server?.code ?? "").replaceAll("4000", port));

    await write("conform.test.ts", here("vitest"));
    // Without this file, vitest would find this project's configuration.
    await write("vitest.config.mjs", "export default {};");
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const tested = await run(process.execPath, [vitest, "run", "--root", room], { cwd: room });
    expect(tested.stdout).toMatch(/1 passed/);

    const client = await compile("conform-client.mts", here("client"));
    const { stdout, stderr } = await run(process.execPath, [client], { cwd: room });
    expect(stdout).toMatch(/^Partial: /m);
    expect(stderr).toMatch(/^(\d+)\/\1 /m);
    expect(await readFile(join(room, "conform.xml"), "utf8")).toContain('<testsuites name="A2A conformance"');
  });
});

describe("docs/stores.md", () => {
  it("its store passes its test, as the page runs it", async () => {
    const blocks = await blocksOf("docs/stores.md");
    const codeOf = (wanted: string): string => blocks.find(({ role }) => role === wanted)?.code ?? "";
    await compile("counting-store.mts", codeOf("store"));
    // The file is not named after the page, because another page's test runner would find the file here.
    const file = await compile("counting-store-suite.mts", codeOf("test"));
    const args = ["--test", "--test-reporter=tap", file];
    const { stdout } = await run(process.execPath, args, { cwd: room });
    expect(stdout).toMatch(/^# fail 0$/m);
    expect(stdout).toMatch(/^# pass [1-9]\d+$/m);
  });

  it("a row that is due is claimed by one of two", async () => {
    const claim = (await blocksOf("docs/stores.md")).find(({ role }) => role === "claim")?.code ?? "";
    await compile("claim.mts", claim);
    const code = `
      import { memoryStore } from "@parley/server";
      import { claim } from "./claim.mts";
      const store = memoryStore();
      const task = { agent: "a", owner: "o", taskId: "t" };
      const json = JSON.stringify({ id: "t", contextId: "c", status: { state: "TASK_STATE_SUBMITTED" } });
      const first = { kind: "task", state: "TASK_STATE_SUBMITTED", json, time: 1, actor: "user", turn: 1, attempt: 1 };
      const row = { effect: "feature", op: "set", feature: "deliveries", key: "k", value: "1", due: 5 };
      await store.append([{ task, create: { contextId: "c" }, records: [first], effects: [row] }]);
      const [due] = await store.dueFeatures({ feature: "deliveries", agents: ["a"], now: 5, limit: 1 });
      console.log((await claim(store, due, 5))?.due, await claim(store, due, 6));`;
    const file = await compile("claims.mts", code);
    const { stdout } = await run(process.execPath, [file], { cwd: room });
    expect(stdout).toBe("30005 undefined\n");
  });
});

describe("docs/push.md", async () => {
  const blocks = await blocksOf("docs/push.md");
  const codeOf = (wanted: string): string => blocks.find(({ role }) => role === wanted)?.code ?? "";

  it("sends and receives webhooks, each in less than 20 lines", async () => {
    for (const role of ["server", "client"]) expect(codeOf(role).trim().split("\n").length).toBeLessThan(20);
    const [server, receiver] = [String(await reservePort()), String(await reservePort())];
    const here = (code: string): string => code.replaceAll("4000", server).replaceAll("8080", receiver);
    await start("push-server.mts", here(codeOf("server")));
    const { printed } = await start(
      "push-client.mts",
      `${here(codeOf("client"))}
       const { task } = await client.sendMessage({ message: "Another", configuration: { returnImmediately: true } });
       ${codeOf("wait")}
       console.log("waited", done.status.state, "Listening on nothing more");`,
    );
    await expect.poll(printed).toContain("waited TASK_STATE_COMPLETED");
    await expect
      .poll(() => printed().match(/^\d .*$/gm))
      .toEqual(["1 TASK_STATE_WORKING", "2 bread", "3 TASK_STATE_COMPLETED"]);
  });

  it("retries parked webhooks, as the page shows operators", async () => {
    const code = `
      import { memoryStore } from "@parley/server";
      const store = memoryStore();
      const task = { agent: "/", owner: "o", taskId: "t" };
      const json = JSON.stringify({ id: "t", contextId: "c", status: { state: "TASK_STATE_SUBMITTED" } });
      const first = { kind: "task", state: "TASK_STATE_SUBMITTED", json, time: 1, actor: "user", turn: 1, attempt: 1 };
      const value = JSON.stringify({ url: "https://x.example/", problem: { at: 1, reason: "It answered 500." } });
      const row = { effect: "feature", op: "set", feature: "push.parked", key: "k", value, due: 5 };
      await store.append([{ task, create: { contextId: "c" }, records: [first], effects: [row] }]);
      ${codeOf("operator")}
      console.log((await operator.show("/", "t")).map(({ state }) => state));`;
    const { stdout } = await run(process.execPath, [await compile("push-operator.mts", code)], { cwd: room });
    expect(stdout).toBe("t k It answered 500.\n[ 'due' ]\n");
  });
});

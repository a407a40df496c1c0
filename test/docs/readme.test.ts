import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { typescript } from "../programs.ts";
import { blocksOf, room, root, run, start, write } from "./pages.ts";
import { reservePort } from "../ports.ts";

describe("the README", () => {
  it("serves in ten lines of code and calls in less than 10; both run, and so does curl", async () => {
    const blocks = await blocksOf("README.md");
    const server = blocks.find(({ role }) => role === "server")?.code ?? "";
    const client = blocks.find(({ role }) => role === "client")?.code ?? "";
    expect(server.split("\n").filter((line) => line !== "")).toHaveLength(10);
    expect(client.trim().split("\n").length).toBeLessThan(10);

    const port = String(await reservePort());
    const here = (code: string): string => code.replaceAll("4000", port);
    await start("server.mts", here(server));
    const { stdout } = await run(process.execPath, [...typescript, await write("client.mts", here(client))], {
      cwd: room,
    });
    expect(stdout).toBe("It is certain.\nTASK_STATE_COMPLETED\n");

    const curl = blocks.find(({ language, code }) => language === "sh" && code.startsWith("curl"))?.code ?? "";
    const answer = await run("sh", ["-c", here(curl)], { cwd: room });
    expect(JSON.parse(answer.stdout)).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
    // A second call with another question creates another task, even with the same messageId.
    const other = await run("sh", ["-c", here(curl).replace("Will it work?", "Will it rain?")], { cwd: room });
    const [first, second] = [answer, other].map(
      ({ stdout: json }) => (JSON.parse(json) as { task: { id: string } }).task.id,
    );
    expect(second).not.toBe(first);
    const again = await run("sh", ["-c", here(curl)], { cwd: room });
    expect(JSON.parse(again.stdout)).toMatchObject({ task: { id: first } });

    // No registry has the package here, so the checkout's program replaces the package. test/release tests the tarball.
    const line = blocks.find(({ code }) => code.startsWith("npx @parley/cli send"))?.code ?? "";
    const parley = here(line).replace("npx @parley/cli", `node ${join(root, "packages/cli/dist/main.js")}`);
    const sent = await run("sh", ["-c", parley], { cwd: root, env: { ...process.env, NO_COLOR: "1" } });
    expect(sent.stdout + sent.stderr).toContain("It is certain.");
  });

  it("names only existing scripts", async () => {
    const { scripts } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { scripts: object };
    const text =
      (await readFile(join(root, "README.md"), "utf8")) + (await readFile(join(root, "CONTRIBUTING.md"), "utf8"));
    // `ask` is a script in the project that `parley init` writes.
    for (const [, name = ""] of text.matchAll(/npm run (?:--silent )?([\w:]+)/g))
      expect([...Object.keys(scripts), "ask"]).toContain(name);
  });
});

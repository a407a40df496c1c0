import { describe, expect, it } from "vitest";
import { blocksOf, compile, room, run, start } from "./pages.ts";
import { reservePort } from "../ports.ts";

describe("docs/migration.md", async () => {
  const blocks = await blocksOf("docs/migration.md");
  const codeOf = (role: string): string => blocks.find((block) => block.role === role)?.code ?? "";

  it.each([
    ["official-server", "official-client"],
    ["official-server", "client"],
    ["server", "official-client"],
    ["server", "client"],
  ])("the %s answers the %s, and all pairs print the same", async (server, client) => {
    const port = String(await reservePort());
    const here = (role: string): string => codeOf(role).replaceAll("4000", port);
    await start(`migration-${server}.mts`, here(server));
    const file = await compile(`migration-${client}.mts`, here(client));
    const { stdout } = await run(process.execPath, [file], { cwd: room });
    expect(stdout).toBe("TASK_STATE_WORKING\nDish for two\nTASK_STATE_COMPLETED\n");
  });
});

import { expect, test } from "vitest";
import { typescript } from "../programs.ts";
import { blocksOf, room, run, write } from "./pages.ts";

test("docs/testing.md has an agent and tests that pass with node:test", async () => {
  const blocks = await blocksOf("docs/testing.md");
  const codeOf = (role: string): string => blocks.find((block) => block.role === role)?.code ?? "";
  await write("agent.ts", codeOf("agent"));
  const file = await write("agent.test.ts", codeOf("test"));
  const { stdout } = await run(process.execPath, [...typescript, "--test", "--test-reporter=tap", file], { cwd: room });
  expect(stdout).toMatch(/^# pass 3$/m);
  expect(stdout).toMatch(/^# fail 0$/m);
});

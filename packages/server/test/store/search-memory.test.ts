import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { compiled } from "../../../../test/programs.ts";

const program = fileURLToPath(new URL("search-memory.ts", import.meta.url));

it("a search in memory keeps about the size of the texts: 4 MB are searched in a heap of 64 MB", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--max-old-space-size=64", compiled(program)]);
  expect(stdout).toBe("1");
});

import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const program = fileURLToPath(new URL("search-memory.ts", import.meta.url));
const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;

it("a search in memory keeps about as many bytes as the texts have: 4 MB are searched in a heap of 64 MB", async () => {
  const args = ["--max-old-space-size=64", "--conditions=@parley/source", "--import", tsx, program];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toBe("1");
});

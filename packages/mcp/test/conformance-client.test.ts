import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { bundled } from "../../../test/programs.ts";

/** MCP's own conformance suite, with `mcpTools()` as the client. docs/decisions/mcp.md has the table. */

interface Check {
  readonly id: string;
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO";
}

const suite = createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/dist/index.js");

/** Whether each scenario passes. */
async function run(): Promise<Map<string, boolean>> {
  const results = await mkdtemp(join(tmpdir(), "mcp-conformance-"));
  const hook = join(import.meta.dirname, "glob-sync.mjs");
  const command = `${process.execPath} ${await bundled(join(import.meta.dirname, "conformance-client.ts"))}`;
  const options = ["--suite", "all", "--timeout", "110000", "--output-dir", results];
  const args = ["--import", hook, suite, "client", "--command", command, ...options];
  // It exits with an error if a scenario fails.
  await new Promise((done) => execFile(process.execPath, args, { cwd: results }, done));
  const passed = new Map<string, boolean>();
  for (const file of await readdir(results, { recursive: true })) {
    if (!file.endsWith("checks.json")) continue;
    const checks = JSON.parse(await readFile(join(results, file), "utf8")) as Check[];
    // Ignores a check that compares measured times, which vary on a busy machine.
    const wrong = checks.filter(({ id, status }) => /FAILURE|WARNING/.test(status) && id !== "client-sse-retry-timing");
    passed.set(dirname(file).replace(/-\d{4}-\d{2}-\d{2}T.*$/, ""), wrong.length === 0);
  }
  return passed;
}

test("passes the applicable scenarios of the conformance suite for clients, and fails only the documented ones", async () => {
  const page = await readFile(join(import.meta.dirname, "../../../docs/decisions/mcp.md"), "utf8");
  const [section = ""] = page.split("## The conformance suite for clients")[1]?.split("\n## ") ?? [];
  const rows = [...section.matchAll(/^\| `([\w/-]+)`\s*\| (.*?)\s*\|$/gm)];
  const expected = Object.fromEntries(rows.map(([, name = "", result]) => [name, result === "passes"]));
  expect(Object.fromEntries(await run())).toEqual(expected);
  expect(rows.length).toBeGreaterThanOrEqual(26);
}, 240_000);

import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve } from "@parley/node";
import { expect, onTestFinished, test } from "vitest";
import { mcpServer } from "../src/index.ts";
import { conforming } from "./conformance-agent.ts";

/** MCP's own conformance suite, against an agent that provides what its scenarios need. docs/decisions/mcp.md has the table. */

interface Check {
  readonly id: string;
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO";
  readonly errorMessage?: string;
}

const suite = createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/dist/index.js");

/** Runs the suite. Returns the checks of each scenario. */
async function run(url: string): Promise<Map<string, readonly Check[]>> {
  const results = await mkdtemp(join(tmpdir(), "mcp-conformance-"));
  const hook = join(import.meta.dirname, "glob-sync.mjs");
  const args = ["--import", hook, suite, "server", "--url", url, "--suite", "all", "--output-dir", results];
  // It exits with an error if a scenario fails.
  await new Promise((done) => execFile(process.execPath, args, { cwd: results }, done));
  const checks = new Map<string, readonly Check[]>();
  for (const folder of await readdir(results)) {
    const name = /^server-(.*)-\d{4}-\d{2}-\d{2}T/.exec(folder)?.[1] ?? folder;
    checks.set(name, JSON.parse(await readFile(join(results, folder, "checks.json"), "utf8")) as Check[]);
  }
  return checks;
}

/** The table of the page: each scenario, and whether it passes or why it does not apply. */
async function table(): Promise<Map<string, string>> {
  const page = await readFile(join(import.meta.dirname, "../../../docs/decisions/mcp.md"), "utf8");
  const rows = page.split("## The conformance suite")[1]?.matchAll(/^\| `([\w-]+)`\s*\| (.*?)\s*\|$/gm) ?? [];
  return new Map([...rows].map(([, name = "", result = ""]) => [name, result]));
}

/** Serves a bridge. Adapts the scenarios' requests: an agent's resources have other URIs, and its tools need a message. */
async function serveBridge(): Promise<string> {
  let [task, base] = ["", ""];
  const answer = async (request: Request): Promise<Response> => {
    const body = (await request.text())
      .replaceAll("test://static-text", `${base}/agent-card`)
      .replaceAll("test://static-binary", `${base}/tasks/${task}/artifacts/picture`)
      .replaceAll("test://template/123/data", `${base}/tasks/${task}/artifacts/123`)
      .replaceAll("test://watched-resource", `${base}/tasks/${task}`)
      .replaceAll(/"arguments":\{\}|("name":"test_simple_text")/g, (_, name: string | undefined) =>
        name === undefined ? '"arguments":{"message":"Go"}' : `${name},"arguments":{"message":"Go"}`,
      );
    const { method, headers, signal, url } = request;
    const init = { method, headers, signal, ...(method === "POST" && { body }) };
    return bridge.fetch(new Request(url, init));
  };
  const routes = (request: Request) => (new URL(request.url).pathname === "/mcp" ? answer(request) : undefined);
  const server = await serve(conforming, { port: 0, logger: false, routes });
  const bridge = await mcpServer(server.url, { localOnly: true });
  task = (await bridge.client.sendMessage("Go")).task?.id ?? "";
  base = `a2a://${new URL(server.url).host}`;
  onTestFinished(async () => {
    await bridge.close();
    await server.close();
  });
  return `${server.url}/mcp`;
}

test("passes the applicable scenarios of the conformance suite, and fails only the documented ones", async () => {
  const [checks, expected] = [await run(await serveBridge()), await table()];
  const results: [string, string][] = [];
  for (const [name, each] of checks) {
    const wrong = each.filter(({ status }) => status === "FAILURE" || status === "WARNING");
    const said = wrong.map(({ id, errorMessage = "" }) => `${id}: ${errorMessage}`).join("; ");
    const reason = expected.get(name);
    results.push([name, said === "" ? "passes" : (reason ?? "passes") === "passes" ? said : (reason ?? "")]);
  }
  expect(Object.fromEntries(results)).toEqual(Object.fromEntries(expected));
  expect(results.filter(([, result]) => result === "passes").length).toBeGreaterThanOrEqual(20);
}, 120_000);

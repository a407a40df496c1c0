import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { blocksOf, compile, room, run, start } from "./pages.ts";
import { reservePort } from "../ports.ts";

test("docs/start.md: the client does not notice a crash of the agent, and curl reads the same stream", async () => {
  const blocks = await blocksOf("docs/start.md");
  const port = String(await reservePort());
  const codeOf = (role: string): string =>
    (blocks.find((block) => block.role === role)?.code ?? "").replaceAll("4000", port);
  const place = await mkdtemp(join(room, "start-"));
  const first = await start("start-agent.mts", codeOf("server"), place);

  const client = execFile(process.execPath, [await compile("start-client.mts", codeOf("client"))]);
  onTestFinished(() => void client.kill("SIGKILL"));
  let said = "";
  client.stdout?.on("data", (chunk: string) => (said += chunk));
  const ended = once(client, "exit");
  await expect.poll(() => said).toContain("\n2\n");
  await first.kill();
  const second = await start("start-agent.mts", codeOf("server"), place);
  await ended;
  expect(said).toBe("1\n2\n3\n4\n5\nTASK_STATE_COMPLETED\n");

  const curl = blocks.find(({ language, code }) => language === "sh" && code.startsWith("curl"))?.code ?? "";
  const { stdout } = await run("sh", ["-c", curl.replaceAll("4000", port)]);
  expect(stdout.match(/"artifactUpdate"/g)).toHaveLength(5);
  await second.kill();
});

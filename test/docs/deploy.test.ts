import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { apiKeyCredential } from "@parley/a2a/credentials";
import { connect } from "@parley/node";
import { beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { certificate } from "../identity/certificates.ts";
import { blocksOf, room, root, start } from "./pages.ts";
import { reservePort } from "../ports.ts";

/** The server of docs/deploy.md, behind a real nginx with the page's configuration. */

const program = "nginx";

beforeAll(() => {
  const { error } = spawnSync(program, ["-v"]);
  if (error !== undefined) throw new Error("This test needs nginx: apt-get install nginx-light", { cause: error });
});

const blocks = await blocksOf("docs/deploy.md");
const codesOf = (language: string): readonly string[] =>
  blocks.filter((block) => block.language === language).map(({ code }) => code);

/** Starts nginx with the page's server and location. Returns the URL and the certificate of nginx. */
async function nginx(upstream: string, port: string): Promise<string> {
  const folder = await mkdtemp(join(room, "nginx-"));
  const { cert, key } = await certificate({ commonName: "localhost", names: ["DNS:localhost"] });
  await writeFile(join(folder, "tls.crt"), cert);
  await writeFile(join(folder, "tls.key"), key);
  const [server = "", grpc = ""] = codesOf("nginx");
  const config = server
    .replace("  location / {", `${grpc}\n  location / {`)
    .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
    .replace("agents.example.com;", "localhost;")
    .replaceAll("/etc/ssl/agents.example.com", join(folder, "tls"))
    .replaceAll("127.0.0.1:4000", `127.0.0.1:${upstream}`);
  const folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((each) => `${each}_temp_path ${folder};`);
  const around = `daemon off; pid ${folder}/pid; events {} http { access_log off; ${folders.join(" ")} ${config} }`;
  await writeFile(join(folder, "nginx.conf"), around);

  const child = spawn(program, ["-p", folder, "-c", "nginx.conf", "-e", "stderr"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  onTestFinished(async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
  });
  await expect.poll(() => readFile(join(folder, "pid"), "utf8").catch(() => said)).toMatch(/^\d+\n$/);
  return cert;
}

describe("the server of docs/deploy.md, behind nginx", () => {
  it.each(["JSONRPC", "HTTP+JSON", "GRPC"])(
    "streams over %s: an event passes before there is another",
    async (binding) => {
      const [upstream, port] = [String(await reservePort()), String(await reservePort())];
      const url = `https://localhost:${port}`;
      const code = (codesOf("ts")[0] ?? "")
        .replace("port: 4000", `port: ${upstream}, grpc: true`)
        .replace("https://agents.example.com", url)
        // No other data follows the first event, so no later data can push the event through the proxy.
        .replace("setTimeout(resolve, 1000)", "setTimeout(resolve, 3_600_000)");
      await start(`deployment-${port}.mts`, code, await mkdtemp(join(room, "deployed-")));
      const ca = await nginx(upstream, port);

      const credentials = [apiKeyCredential("secret-for-this-page-0123456789")];
      const client = await connect(url, { binding, credentials, tls: { ca } });
      expect(client.chosen.url).toContain(`localhost:${port}`);
      const seen: string[] = [];
      for await (const { artifactUpdate, statusUpdate } of client.sendStreamingMessage("What time is it?")) {
        if (statusUpdate !== undefined) seen.push(statusUpdate.status.state);
        if (artifactUpdate === undefined) continue;
        seen.push(artifactUpdate.artifact.artifactId);
        await client.cancelTask(artifactUpdate.taskId);
      }
      expect(seen).toEqual(["tick-1", "TASK_STATE_CANCELED"]);
    },
  );
});

test.each(readdirSync(join(root, "deploy")))("deploy/%s is linked from the page", async (name) => {
  const page = await readFile(join(root, "docs/deploy.md"), "utf8");
  expect(page).toContain(`](../deploy/${name})`);
});

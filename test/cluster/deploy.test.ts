import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiKeyCredential } from "@parley/a2a/credentials";
import { connect } from "@parley/node";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { blocksOf, root, start, type Started } from "../docs/pages.ts";
import { reservePort } from "../ports.ts";
import { certificate } from "../identity/certificates.ts";
import { useDatabase } from "../postgres/database.ts";

/**
 * Tests deploy/compose.yaml without containers: runs the program of docs/deploy.md twice, on different addresses, behind nginx with
 * deploy/nginx.conf, on a real PostgreSQL. A DNS server in this test replaces Docker's DNS server.
 */

const database = useDatabase();

const program = "nginx";
beforeAll(() => {
  const { error } = spawnSync(program, ["-v"]);
  if (error !== undefined) throw new Error("This test needs nginx: apt-get install nginx-light", { cause: error });
});

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "parley-deploy-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal);
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

/** Starts a DNS server that answers every IPv4 query with all addresses, whatever the name (RFC 1035 §4.1). */
async function nameServer(addresses: readonly string[]): Promise<number> {
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    const nameEnd = query.indexOf(0, 12) + 1;
    const type = query.readUInt16BE(nameEnd);
    const found = type === 1 ? addresses : [];
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(found.length, 6);
    header.writeUInt32BE(0, 8);
    const answers = found.map((address) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...address.split(".").map(Number)]),
    );
    socket.send(Buffer.concat([header, query.subarray(12, nameEnd + 4), ...answers]), from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  onTestFinished(() => void socket.close());
  return socket.address().port;
}

/** Starts the program of the page at an address, with the store option that makes the program one of several nodes. */
async function startNode(address: string, port: number, url: string): Promise<Started> {
  const blocks = await blocksOf("docs/deploy.md");
  const server = blocks.find(({ role }) => role === "server")?.code ?? "";
  const fragment =
    blocks.find(({ code }) => code.includes("DATABASE_URL") && code.includes("options, store"))?.code ?? "";
  const [, store = ""] = /options, (store: .+) \}\);/.exec(fragment) ?? [];
  expect(store).toContain("postgresStore");
  // The page's program already imports `serve`.
  const added = fragment.replace(/^const server.*\n/m, "").replace('import { serve } from "@parley/node";\n', "");
  const code = `${added}${server}`
    .replace("await serve(agent, {", `await serve(agent, {\n  ${store},`)
    .replace("0.0.0.0", address)
    .replace("port: 4000", `port: ${port}`)
    .replace("https://agents.example.com", url)
    .replace('process.env["DATABASE_URL"]', JSON.stringify(database().url));
  return start(`node-${address}-${port}.mts`, code, await newFolder());
}

/** Starts nginx with the configuration of deploy/. Returns nginx's certificate, and a function that restarts nginx. */
async function startNginx(port: number, nodes: number, names: number) {
  const folder = await newFolder();
  const { cert, key } = await certificate({ commonName: "localhost", names: ["DNS:localhost"] });
  await writeFile(join(folder, "tls.crt"), cert);
  await writeFile(join(folder, "tls.key"), key);
  const config = (await readFile(join(root, "deploy/nginx.conf"), "utf8"))
    .replace("listen 443", `listen 127.0.0.1:${port}`)
    .replace("server_name agents.example.com", "server_name localhost")
    .replaceAll("/etc/nginx/tls", folder)
    .replace("resolver 127.0.0.11", `resolver 127.0.0.1:${names} ipv6=off`)
    .replace("agent:4000", `agent:${nodes}`);
  const folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((each) => `${each}_temp_path ${folder};`);
  const around = `daemon off; pid ${folder}/pid; events {} http { access_log off; ${folders.join(" ")} ${config} }`;
  await writeFile(join(folder, "nginx.conf"), around);
  let child: ChildProcess;
  const run = async (): Promise<void> => {
    child = spawn(program, ["-p", folder, "-c", "nginx.conf", "-e", "stderr"], { stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    await expect.poll(() => readFile(join(folder, "pid"), "utf8").catch(() => said)).toMatch(/^\d+\n$/);
  };
  await run();
  onTestFinished(() => end(child, "SIGTERM"));
  return {
    cert,
    async restart() {
      await end(child, "SIGTERM");
      await run();
    },
  };
}

test("the nodes of deploy/ behind its balancer: streams survive a kill of their node, and of the balancer", async () => {
  const [port, nodes] = [await reservePort(), await reservePort()];
  const url = `https://localhost:${port}`;
  const [one] = await Promise.all(["127.0.0.1", "127.0.0.2"].map((address) => startNode(address, nodes, url)));
  const { cert, restart } = await startNginx(port, nodes, await nameServer(["127.0.0.1", "127.0.0.2"]));

  const credentials = [apiKeyCredential("secret-for-this-page-0123456789")];
  let [killed, restarted] = [false, false];
  const follow = async (): Promise<{ ticks: string[]; state: string | undefined }> => {
    const client = await connect(url, { credentials, tls: { ca: cert } });
    let ticks: string[] = [];
    let state: string | undefined;
    for await (const { task, artifactUpdate, statusUpdate } of client.sendStreamingMessage("What time is it?")) {
      // If the first event was lost with its node, the stream starts again with the current task.
      if (task !== undefined) ticks = (task.artifacts ?? []).map(({ artifactId }) => artifactId);
      if (statusUpdate !== undefined) ({ state } = statusUpdate.status);
      if (artifactUpdate === undefined) continue;
      ticks.push(artifactUpdate.artifact.artifactId);
      if (!killed) {
        killed = true;
        await one?.kill();
      } else if (ticks.length >= 2 && !restarted) {
        restarted = true;
        await restart();
      }
    }
    return { ticks, state };
  };
  const heard = await Promise.all(Array.from({ length: 8 }, () => follow()));
  expect([killed, restarted]).toEqual([true, true]);
  for (const each of heard)
    expect(each).toEqual({ ticks: ["tick-1", "tick-2", "tick-3"], state: "TASK_STATE_COMPLETED" });
});

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, request, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { reservePort } from "../ports.ts";
import { useDatabase } from "../postgres/database.ts";
import { ready, send, useServers, type Program } from "./servers.ts";

/** Tests that no request is rejected when nodes are replaced one at a time behind a real balancer while clients send requests. */

const start = useServers();
const database = useDatabase();
const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin` };

beforeAll(() => {
  for (const program of ["nginx", "haproxy"]) {
    const { error } = spawnSync(program, ["-v"], { env });
    if (error !== undefined)
      throw new Error(`This test needs ${program}: apt-get install ${program}`, { cause: error });
  }
});

interface Setup {
  /** The balancer's command line, with a configuration in `folder`. */
  readonly command: (folder: string) => readonly [string, ...string[]];
  readonly config: (port: number, nodes: readonly number[], folder: string) => string;
}

const nginxFolders = (folder: string): string =>
  ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((each) => `${each}_temp_path ${folder};`).join(" ");

const balancers: Readonly<Record<string, Setup>> = {
  "HAProxy, which passes connections on and asks /readyz": {
    command: (folder) => ["haproxy", "-db", "-f", join(folder, "config")],
    config: (port, nodes) => `
defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
  # A node that answers late on a busy machine is not down: without this, checks wait for as long as their interval.
  timeout check 2s
  retries 3
  option redispatch 1
listen agents
  bind 127.0.0.1:${port}
  option httpchk GET /readyz
  default-server check inter 100ms fastinter 100ms downinter 100ms fall 1 rise 1
${nodes.map((node) => `  server node-${node} 127.0.0.1:${node}`).join("\n")}
`,
  },
  "nginx, which passes requests on and asks nothing": {
    command: (folder) => ["nginx", "-p", folder, "-c", "config", "-e", "stderr"],
    config: (port, nodes, folder) => `
daemon off; pid ${folder}/pid; events {}
http {
  access_log off; ${nginxFolders(folder)}
  upstream agents { ${nodes.map((node) => `server 127.0.0.1:${node} max_fails=0;`).join(" ")} keepalive 4; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://agents;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header Connection "";
      proxy_next_upstream error timeout non_idempotent;
    }
  }
}
`,
  },
};

async function startBalancer({ command, config }: Setup, nodes: readonly number[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "parley-rolling-"));
  const port = await reservePort();
  await writeFile(join(folder, "config"), config(port, nodes, folder));
  const [program, ...args] = command(folder);
  const child: ChildProcess = spawn(program, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  onTestFinished(async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    await rm(folder, { recursive: true });
  });
  const url = `http://127.0.0.1:${port}`;
  const isUp = (): Promise<string> =>
    fetch(`${url}/healthz`).then(
      ({ status }) => String(status),
      () => errors,
    );
  await expect.poll(isUp, { interval: 50 }).toBe("200");
  return url;
}

/** Returns the outcome of a request, on a separate connection unless the agent keeps connections: "200", or the failure. */
async function outcome(url: string, agent: Agent | false, body?: object): Promise<string> {
  const outgoing = request(url, {
    method: body === undefined ? "GET" : "POST",
    agent,
    headers: { "content-type": "application/json" },
  });
  try {
    outgoing.end(body && JSON.stringify(body));
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    incoming.resume();
    await once(incoming, "end");
    return String(incoming.statusCode);
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code ?? error);
  }
}

/** Far longer than the balancer's interval between health checks, even on a busy machine. */
const drainDelay = 4_000;

test.each(Object.keys(balancers).flatMap((name) => [[name, 10_000, 1] as const, [name, 10_000, 2] as const]))(
  "behind %s, %d requests over a rolling restart of nodes with %d processes: 0 are rejected",
  async (name, total, processes) => {
    const ports = [await reservePort(), await reservePort()];
    const begin = async (port: number): Promise<Program> => {
      const options = { port, processes, drainDelay, grace: 5_000, database: database().url, looks: true };
      const program = start(options);
      await ready(program);
      return program;
    };
    let nodes = await Promise.all(ports.map(begin));
    const url = await startBalancer(balancers[name] as Setup, ports);
    const { id } = await send(url, { chunks: 1, pause: 1 });

    const outcomes = new Map<string, number>();
    let [count, isReplacing] = [0, true];
    const work = async (agent: Agent | false): Promise<void> => {
      while (count < total || isReplacing) {
        count += 1;
        const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: '{"chunks":0}' }] };
        const sends = count % 50 === 0;
        const what = await outcome(
          sends ? `${url}/message:send` : `${url}/tasks/${id}`,
          agent,
          sends ? { message } : undefined,
        );
        outcomes.set(what, (outcomes.get(what) ?? 0) + 1);
      }
    };
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => kept.destroy());
    const works = [false, false, false, kept, kept].map((agent) => work(agent as Agent | false));
    const replaced: Program[] = [];
    for (const [at, port] of ports.entries()) {
      const old = nodes[at] as Program;
      old.child.kill("SIGTERM");
      expect(await old.ended).toEqual([null, "SIGTERM"]);
      replaced.push(await begin(port));
      // The balancer must know the new node before the old one stops. An orchestrator would wait for readiness.
      await pause(drainDelay / 2);
    }
    nodes = replaced;
    isReplacing = false;
    await Promise.all(works);
    expect(count).toBeGreaterThanOrEqual(total);
    expect(Object.fromEntries(outcomes)).toEqual({ "200": count });
  },
);

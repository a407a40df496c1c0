import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, type Client } from "@parley/a2a";
import { pushOperator } from "@parley/server/store";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, describe, expect, it, vi } from "vitest";
import { certificateFor } from "../../packages/node/test/support/certificate.ts";
import { integrityOf } from "../../packages/sql/test/sqlite/integrity.ts";
import { times } from "../counts.ts";
import { diskFolder } from "../temporary.ts";
import { random } from "./plan.ts";
import { reservePort, Supervisor } from "./supervisor.ts";

/**
 * A real server on SQLite posts to receivers that each misbehave in a different way, and is killed while all of them do. Later processes
 * kill themselves just before or just after an append: between a request and the cursor, or between an answer and the cursor.
 */
const kills = times(1, 30);
const seed = Number(process.env["PARLEY_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

/** An accepted request, or one that reached the receiver's code. */
interface Got {
  readonly id: string;
  readonly sequence: number;
  readonly gist: string;
}

type Misbehaviour = (response: ServerResponse, request: IncomingMessage) => void;

/** What a receiver does until it is tamed. `accepts`: the receiver keeps the event, but the sender does not learn this. */
const misbehaviours: Readonly<Record<string, { readonly act: Misbehaviour; readonly accepts?: true }>> = {
  fails: { act: (response) => response.writeHead(500).end() },
  hangs: { act: () => {} },
  "answers slowly": { act: (response) => response.writeHead(200).write("a") },
  "resets in the body": {
    act: (response) =>
      response.writeHead(200, { "content-length": "9" }).write("half", () => response.socket?.resetAndDestroy()),
  },
  redirects: { act: (response) => response.writeHead(302, { location: inner.url }).end() },
  "answers with too much": { act: (response) => response.writeHead(200).write(Buffer.alloc(4 << 20)) },
  "throttles by seconds": { act: (response) => response.writeHead(429, { "retry-after": "1" }).end() },
  "throttles by a date": {
    act: (response) => response.writeHead(503, { "retry-after": new Date(Date.now() + 1_000).toUTCString() }).end(),
  },
  "is gone": { act: (response) => response.writeHead(410).end() },
  "takes it and loses the answer": { act: (response) => response.socket?.destroy(), accepts: true },
};

class Receiver {
  url = "";
  /** Whether it behaves well now. */
  tame: boolean;
  /** All requests, and those that it accepted. */
  readonly asked: Got[] = [];
  readonly taken: Got[] = [];

  constructor(tame: boolean) {
    this.tame = tame;
  }

  handler(act: Misbehaviour = () => {}, accepts = false) {
    return (request: IncomingMessage, response: ServerResponse): void => {
      let body = "";
      request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
      request
        .on("error", () => {})
        .on("end", () => {
          const got = gotOf(request, body);
          this.asked.push(got);
          if (this.tame || accepts) this.taken.push(got);
          if (this.tame) response.writeHead(204).end();
          else
            act(
              response.on("error", () => {}),
              request,
            );
        });
    };
  }
}

function gotOf({ headers }: IncomingMessage, body: string): Got {
  const event = JSON.parse(body) as {
    statusUpdate?: { status: { state: string } };
    artifactUpdate?: { artifact: { artifactId: string } };
  };
  return {
    id: String(headers["webhook-id"]),
    sequence: Number(headers["parley-sequence"]),
    gist: event.statusUpdate?.status.state ?? event.artifactUpdate?.artifact.artifactId ?? body,
  };
}

const expected = ["TASK_STATE_WORKING", "a", "b", "c", "TASK_STATE_COMPLETED"];

/** Removes repeated requests, which a receiver recognizes by their id. */
function distinct(got: readonly Got[]): readonly Got[] {
  return got.filter(({ id }, at) => got.findIndex((each) => each.id === id) === at);
}

const servers: Server[] = [];
async function listen(server: Server, protocol: string): Promise<string> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const folder = await mkdtemp(join(diskFolder(), "parley-webhooks-"));
const path = join(folder, "tasks.db");
await writeFile(`${path}.lives`, "0");
const script = fileURLToPath(new URL("webhook-server.ts", import.meta.url));
const supervisor = new Supervisor(path, await reservePort(), script);
afterAll(async () => {
  supervisor.stop();
  for (const server of servers) server.closeAllConnections();
  await rm(folder, { recursive: true });
});

/** A receiver to which no request may be redirected. */
const inner = new Receiver(true);

describe("a server of webhooks that is killed", () => {
  it(`loses no event, and sends none out of order, whatever its receivers did just then: ${kills} more kills, seed ${seed}`, async () => {
    inner.url = await listen(createServer(inner.handler()), "http");
    const hostile = new Map<string, Receiver>();
    for (const [name, { act, accepts }] of Object.entries(misbehaviours)) {
      const receiver = new Receiver(false);
      receiver.url = await listen(createServer(receiver.handler(act, accepts)), "http");
      hostile.set(name, receiver);
    }
    const wrong = await certificateFor("elsewhere.example");
    const right = await certificateFor("127.0.0.1");
    await writeFile(`${path}.ca`, `${wrong.cert}\n${right.cert}`);
    const sealed = new Receiver(true);
    let refusedHandshakes = 0;
    const tlsServer = createTlsServer(wrong, sealed.handler());
    tlsServer.on("tlsClientError", () => (refusedHandshakes += 1));
    tlsServer.on("secureConnection", (socket) => socket.on("close", () => (refusedHandshakes += 1)));
    sealed.url = await listen(tlsServer, "https");

    const next = random(seed);
    let life = await supervisor.start();
    let client = await connect(supervisor.url);
    const tasks = new Map<string, string>();
    for (const [name, { url }] of [...hostile, ["has another name", sealed] as const])
      tasks.set(name, await begin(client, url));
    // The well-behaved receivers get everything while the others do not answer.
    const calm = new Receiver(true);
    calm.url = await listen(createServer(calm.handler()), "http");
    tasks.set("answers", await begin(client, calm.url));
    await until(() => expect(calm.taken.map(({ gist }) => gist)).toEqual(expected));
    await until(() => expect([...hostile.values()].filter(({ asked }) => asked.length === 0)).toEqual([]));
    await until(() => expect(refusedHandshakes).toBeGreaterThan(0));
    life.kill("SIGKILL");
    expect(await life.end).toBe("SIGKILL");

    for (const receiver of hostile.values()) receiver.tame = true;
    for (const server of servers) server.closeAllConnections();
    tlsServer.setSecureContext(right);
    const more: Receiver[] = [];
    for (let kill = 0; kill < kills; kill += 1) {
      life = await supervisor.start({
        moment: next() < 0.5 ? "before" : "after",
        append: 3 + Math.floor(next() * 40),
      });
      const receiver = new Receiver(true);
      receiver.url = await listen(createServer(receiver.handler()), "http");
      more.push(receiver);
      let over = false;
      void life.end.then(() => (over = true));
      for (let sent = 0; !over; sent += 1) {
        try {
          client = await connect(supervisor.url, { retry: false });
          const id = await begin(client, receiver.url);
          tasks.set(`kill ${kill}, task ${sent}`, id);
        } catch {
          // The server was killed during the call.
        }
      }
      expect(await life.end).toBe("SIGKILL");
    }

    life = await supervisor.start();
    const store = await sqliteStore({ path });
    await until(async () => {
      const due = await store.dueFeatures({ feature: "push", now: Infinity, limit: 1 });
      expect(due).toEqual([]);
    });
    life.kill("SIGTERM");
    expect(await life.end).toBe("SIGTERM");
    expect(supervisor.complaints).toEqual([]);

    const operator = pushOperator(store);
    for (const [name, { asked, taken }] of [...hostile, ["has another name", sealed] as const]) {
      const sequences = asked.map(({ sequence }) => sequence);
      expect(sequences, name).toEqual([...sequences].sort((one, other) => one - other));
      const [entry] = await operator.show("/", tasks.get(name) ?? "");
      if (name === "is gone") {
        expect([entry, distinct(taken).map(({ gist }) => gist)]).toEqual(
          entry === undefined ? [undefined, []] : [expect.anything(), expected],
        );
        continue;
      }
      const refused = entry?.refused.map(({ sequence }) => sequence) ?? [];
      const covered = [...refused, ...distinct(taken).map(({ sequence }) => sequence)].sort(
        (one, other) => one - other,
      );
      expect(covered, name).toEqual([1, 2, 3, 4, 5]);
      const gists = expected.filter((_gist, at) => !refused.includes(at + 1));
      expect(
        distinct(taken).map(({ gist }) => gist),
        name,
      ).toEqual(gists);
      if (name !== "redirects") expect(refused, name).toEqual([]);
    }
    expect(inner.asked).toEqual([]);
    for (const { asked } of more) {
      // Each config has its own nonce, with which the id begins.
      const byConfig = new Map<string, number[]>();
      for (const { id, sequence } of asked) {
        const config = id.split("_", 1)[0] ?? "";
        byConfig.set(config, [...(byConfig.get(config) ?? []), sequence]);
      }
      for (const sequences of byConfig.values()) {
        const inOrder = [...new Set(sequences)];
        expect(inOrder).toEqual(inOrder.map((_each, at) => at + 1));
        expect(sequences).toEqual([...sequences].sort((one, other) => one - other));
      }
    }
    // Each event of each task was delivered, however the task ended.
    for (const id of tasks.values()) {
      for (const { state, delivered, refused } of await operator.show("/", id)) {
        expect(state).toBe("idle");
        expect(delivered + refused.length).toBeGreaterThan(0);
      }
    }
    await store.close();
    expect(integrityOf(path)).toEqual(["ok"]);
  });
});

/** Starts a task that reports to an address. Resolves to the task's id. */
async function begin(client: Client, url: string): Promise<string> {
  const configuration = { taskPushNotificationConfig: { url }, returnImmediately: true };
  const { task } = await client.sendMessage({ message: "Go", configuration });
  return task?.id ?? "";
}

function until(check: () => unknown): Promise<void> {
  return vi.waitFor(
    async () => {
      await check();
    },
    { interval: 20 },
  );
}

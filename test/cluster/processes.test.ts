import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "@parley/a2a";
import { connect as connectWithGrpc } from "@parley/node";
import { certificateFor } from "../../packages/node/test/support/certificate.ts";
import { useDatabase } from "../postgres/database.ts";
import type { ManyOptions } from "./many.ts";
import { call, Heard, ready, send, serving, upTo, useServers, type TaskJson } from "./servers.ts";

/** Tests `serve(agent, { processes: n })`: several processes on one machine share one port, and any process answers any request. */

const start = useServers();
const database = useDatabase();
let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-many-"));
});
afterAll(() => rm(folder, { recursive: true }));

const stores: Readonly<Record<string, () => Pick<ManyOptions, "file" | "database">>> = {
  SQLite: () => ({ file: join(folder, `${crypto.randomUUID()}.db`) }),
  PostgreSQL: () => ({ database: database().url }),
};
const sqlite = stores["SQLite"]!;

/** Returns the id of the process that works on a task, according to the task. */
async function workerOf(url: string, taskId: string): Promise<number> {
  let pid = 0;
  const look = async (): Promise<number> => {
    const task = JSON.parse((await call(`${url}/tasks/${taskId}`)).text) as TaskJson;
    return (pid = Number(task.status.message?.parts[0]?.text ?? 0));
  };
  await expect.poll(look, { interval: 20 }).toBeGreaterThan(0);
  return pid;
}

/** Returns the status of a request, or 0 if the connection was closed. */
async function statusOf(url: string): Promise<number> {
  return call(url).then(
    ({ status }) => status,
    () => 0,
  );
}

function isGone(pid: number): boolean {
  try {
    return !process.kill(pid, 0);
  } catch {
    return true;
  }
}

describe.each(Object.keys(stores))("two processes with %s", (name) => {
  test("answer sends, streams, subscriptions and cancels, whichever of them runs the task, and wake each other", async () => {
    const program = start({ processes: 2, ...stores[name]!() });
    const { url } = await ready(program);
    expect(serving(program)).toHaveLength(2);
    // Two consecutive requests reach two different processes.
    const works = await Promise.all([1, 2].map(() => send(url, { chunks: 2, pause: 1 })));
    expect(works.map(({ status }) => status.state)).toEqual(["TASK_STATE_COMPLETED", "TASK_STATE_COMPLETED"]);
    const pids = works.flatMap(({ artifacts }) => artifacts?.[0]?.parts.map(({ text }) => Number(text.split(":")[1])));
    expect(new Set(pids)).toEqual(new Set(serving(program)));

    // The readers of one task use separate connections, so half of the readers are on the other process.
    const finish = join(folder, crypto.randomUUID());
    const task = await send(url, { chunks: 20, pause: 5, finish }, false);
    const client = await connect(url);
    const read = async (): Promise<Heard> => {
      const heard = new Heard();
      for await (const event of client.subscribeToTask({ id: task.id })) heard.add(event);
      return heard;
    };
    const readers = upTo(6).map(() => read());
    writeFileSync(finish, "");
    for (const heard of await Promise.all(readers)) {
      expect(heard.state).toBe("TASK_STATE_COMPLETED");
      expect(heard.chunks).toEqual(upTo(20));
    }

    // HTTP/2 and gRPC are on the same port.
    const grpc = await connectWithGrpc(url, { binding: "GRPC" });
    const overGrpc = new Heard();
    for await (const event of grpc.sendStreamingMessage(JSON.stringify({ chunks: 3, pause: 1 }))) overGrpc.add(event);
    expect(overGrpc).toMatchObject({ chunks: upTo(3), state: "TASK_STATE_COMPLETED" });

    // A cancel on either process ends a turn that would otherwise never end.
    for (const chunks of [0, 1]) {
      const endless = await send(url, { chunks, pause: 0, finish: join(folder, "never") }, false);
      await workerOf(url, endless.id);
      expect(JSON.parse((await call(`${url}/tasks/${endless.id}:cancel`, {})).text)).toMatchObject({
        status: { state: "TASK_STATE_CANCELED" },
      });
    }
  });

  test("lose no event of fifty streams when one of them is killed, and the other takes its tasks at once", async () => {
    // Leases do not expire, and no process is restarted, so the other process continues the tasks because it gets a wake-up.
    const told = { mode: "fails later", lease: { ttl: 3_600_000 } } as const;
    const program = start({ processes: 2, ...told, ...stores[name]!() });
    const { url } = await ready(program);
    const [victim = NaN] = serving(program);
    const chunks = 12;
    const hold = join(folder, crypto.randomUUID());
    let begun = 0;
    const stream = async (): Promise<Heard> => {
      const client = await connect(url);
      const heard = new Heard();
      for await (const event of client.sendStreamingMessage(JSON.stringify({ chunks, pause: 10, hold }))) {
        heard.add(event);
        if (event.artifactUpdate === undefined || heard.chunks.length !== 2 || (begun += 1) !== 40) continue;
        process.kill(victim, "SIGKILL");
        await writeFile(hold, "");
      }
      return heard;
    };
    const heard = await Promise.all(upTo(50).map(() => stream()));
    expect(begun).toBeGreaterThanOrEqual(40);
    for (const each of heard) expect(each).toMatchObject({ chunks: upTo(chunks), state: "TASK_STATE_COMPLETED" });
    // Another process finished tasks of the killed process.
    expect(heard.some(({ pids }) => pids.has(victim) && pids.size > 1)).toBe(true);
  });
});

describe("processes that serve", () => {
  test("end with the program if one of them fails at startup, with a message, and without a retry", async () => {
    const program = start({ processes: 2, mode: "fails", ...sqlite() });
    expect(await program.ended).toEqual([1, null]);
    expect(program.errors()).toMatch(
      /Process \d of 2 ended before it served \(code 1\)\. See its output for the reason/,
    );
    expect(program.errors()).toContain("This program fails where it serves");
    expect(program.errors().match(/This program fails where it serves/g)?.length).toBeLessThanOrEqual(4);
  });

  test.each<[string, (port: number) => ManyOptions, string]>([
    ["a store in memory", () => ({ processes: 2 }), "`processes` needs a store that all processes share"],
    ["a number that is none", () => ({ processes: 1.5 }), 'must be a whole number from 1 to 256, or "cores"'],
    ["a port that is in use", (port) => ({ processes: 2, port, ...sqlite() }), "another process uses this port"],
    ["an open door", () => ({ processes: 2, host: "0.0.0.0", ...sqlite() }), "there is no authenticator"],
  ])("reject %s with the error of a single process", async (_what, options, sentence) => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    try {
      const program = start(options((taken.address() as AddressInfo).port));
      expect((await program.ended)[0]).toBe(1);
      expect(program.errors()).toContain(sentence);
    } finally {
      taken.close();
    }
  });

  test("are restarted with longer pauses if they end before they serve, while the others serve; all end with the first one", async () => {
    const program = start({ processes: 2, mode: "fails later", ...sqlite() });
    const { url } = await ready(program);
    const [victim = NaN, other = NaN] = serving(program);
    process.kill(victim, "SIGKILL");
    const restarts = (): readonly unknown[] =>
      program.log.flatMap(({ message, restartIn }) => (message.includes("; restarting") ? [restartIn] : []));
    await expect.poll(() => restarts().length, { interval: 20 }).toBeGreaterThan(2);
    expect(restarts().slice(0, 3)).toEqual([200, 400, 800]);
    const { artifacts } = await send(url, { chunks: 2, pause: 1 });
    expect(artifacts?.[0]?.parts.map(({ text }) => text)).toEqual([`0:${other}`, `1:${other}`]);
    program.child.kill("SIGKILL");
    expect(await program.ended).toEqual([null, "SIGKILL"]);
    await expect.poll(() => serving(program).every(isGone), { interval: 20 }).toBe(true);
  });

  test("report that one of them has not called serve() only if it has not", async () => {
    const program = start({ processes: 2, mode: "hurries", ...sqlite() });
    await ready(program);
    await expect.poll(() => program.lines).toContainEqual({ later: true });
    expect(program.log.filter(({ message }) => message.includes("serve()"))).toEqual([]);
  });

  test("answer each other's links to large files, also without keys", async () => {
    const program = start({ processes: 2, files: join(folder, "files"), ...sqlite() });
    const { url } = await ready(program);
    const parts = [{ text: JSON.stringify({ chunks: 0, pause: 0 }) }, { raw: "AAAA" }];
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts };
    const sent = await call(`${url}/message:send`, { message });
    const [link = ""] = /http[^"]*\/parley\/file[^"]*/.exec(sent.text) ?? [];
    const answers = await Promise.all(upTo(6).map(() => call(link)));
    expect(answers.map(({ status }) => status)).toEqual(upTo(6).map(() => 200));
  });

  test("receive signals of the program; at SIGTERM they close the port, finish their turns, and end", async () => {
    const program = start({ processes: 2, grace: 60_000, mode: "signals", ...sqlite() });
    const { url, names } = await ready(program);
    expect(names).toEqual(["Counter"]);
    const task = await send(url, "wait", false);
    await workerOf(url, task.id);
    program.child.stdin?.write(JSON.stringify([task.id, "yes"]));
    await expect.poll(async () => (await call(`${url}/tasks/${task.id}`)).text).toContain("TASK_STATE_COMPLETED");
    await expect.poll(() => program.lines).toContainEqual({ signaled: task.id });
    program.child.stdin?.write(JSON.stringify(["no-such-task", "yes"]));
    await expect.poll(() => program.lines).toContainEqual({ refused: "TaskNotFound" });
    const running = await Promise.all([1, 2].map(() => send(url, "wait", false)));
    program.child.stdin?.write(JSON.stringify(["export", "anonymous"]));
    const exported = (): unknown => program.lines.find((line) => typeof line === "object" && "exported" in line);
    await expect.poll(exported).toBeDefined();
    const { exported: types } = exported() as { readonly exported: readonly string[] };
    expect([types[0], ...types.slice(-2)]).toEqual(["export", "end", "export"]);
    expect(types.filter((type) => type === "context")).toHaveLength(3);
    expect(types.filter((type) => type === "task").length).toBeGreaterThanOrEqual(3);
    program.child.stdin?.write(JSON.stringify(["delete", "anonymous"]));
    await expect.poll(() => program.lines).toContainEqual({ erased: { tasks: 3, canceled: 2 } });
    for (const { id } of [task, ...running]) expect(await statusOf(`${url}/tasks/${id}`)).toBe(404);
    const finish = join(folder, crypto.randomUUID());
    const client = await connect(url);
    const heard = new Heard();
    const stream = (async () => {
      const work = JSON.stringify({ chunks: 3, pause: 1, finish });
      for await (const event of client.sendStreamingMessage(work)) heard.add(event);
    })();
    await expect.poll(() => heard.chunks.length, { interval: 10 }).toBe(3);
    program.child.kill("SIGTERM");
    await expect.poll(() => statusOf(`${url}/readyz`), { interval: 20 }).toBe(0);
    writeFileSync(finish, "");
    await stream;
    expect(heard.state).toBe("TASK_STATE_COMPLETED");
    expect(await program.ended).toEqual([null, "SIGTERM"]);
    expect(serving(program).every(isGone)).toBe(true);
  });

  test("end at once at a second signal", async () => {
    const program = start({ processes: 2, grace: 3_600_000, ...sqlite() });
    const { url } = await ready(program);
    await send(url, { chunks: 1, pause: 1, finish: join(folder, "never") }, false);
    program.child.kill("SIGINT");
    await expect.poll(() => statusOf(`${url}/readyz`), { interval: 20 }).toBe(0);
    program.child.kill("SIGINT");
    expect(await program.ended).toEqual([null, "SIGINT"]);
    await expect.poll(() => serving(program).every(isGone), { interval: 20 }).toBe(true);
  });

  test("replace one that gets only SIGTERM, which first finishes its turns", async () => {
    const program = start({ processes: 2, grace: 60_000, ...sqlite() });
    const { url } = await ready(program);
    const finish = join(folder, crypto.randomUUID());
    const task = await send(url, { chunks: 1, pause: 1, finish }, false);
    const pid = await workerOf(url, task.id);
    process.kill(pid, "SIGTERM");
    // The process is already out of rotation: after the signal, no request is rejected.
    const probes = async (): Promise<readonly number[]> => {
      return [await statusOf(`${url}/readyz`), await statusOf(`${url}/readyz`), await statusOf(`${url}/readyz`)];
    };
    await expect.poll(probes, { interval: 20 }).toEqual([200, 200, 200]);
    writeFileSync(finish, "");
    await expect.poll(() => serving(program).length, { interval: 20 }).toBe(3);
    await expect.poll(async () => (await call(`${url}/tasks/${task.id}`)).text).toContain("TASK_STATE_COMPLETED");
  });

  test("leave the port to another server at once, and finish their turns", async () => {
    const program = start({ processes: 2, mode: "leaves", ...sqlite() });
    const { url } = await ready(program);
    const finish = join(folder, crypto.randomUUID());
    const client = await connect(url, { reconnect: false });
    const heard = new Heard();
    const stream = (async () => {
      const work = JSON.stringify({ chunks: 1, pause: 1, finish });
      for await (const event of client.sendStreamingMessage(work)) heard.add(event);
    })();
    await expect.poll(() => heard.chunks.length, { interval: 10 }).toBe(1);
    program.child.stdin?.write("leave");
    await expect
      .poll(() =>
        call(url).then(
          () => "open",
          (error: NodeJS.ErrnoException) => error.code,
        ),
      )
      .toBe("ECONNREFUSED");
    writeFileSync(finish, "");
    await stream;
    expect(heard.state).toBe("TASK_STATE_COMPLETED");
    expect(await program.ended).toEqual([0, null]);
  });

  test("support TLS, and gRPC on its own port", async () => {
    const { cert, key } = await certificateFor("127.0.0.1");
    const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    await Promise.all([writeFile(certFile, cert), writeFile(keyFile, key)]);
    const program = start({ processes: 2, tls: { certFile, keyFile }, mode: "gRPC apart", ...sqlite() });
    const { url, ports } = await ready(program);
    expect(Object.keys(ports)).toEqual(["GRPC"]);
    for (const binding of ["GRPC", "JSONRPC"] as const) {
      const client = await connectWithGrpc(url, { tls: { ca: cert }, binding });
      const heard = new Heard();
      for await (const event of client.sendStreamingMessage(JSON.stringify({ chunks: 2, pause: 1 }))) heard.add(event);
      expect(heard).toMatchObject({ chunks: [0, 1], state: "TASK_STATE_COMPLETED" });
    }
  });
});

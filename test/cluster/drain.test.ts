import { writeFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connect } from "@parley/a2a";
import { useDatabase } from "../postgres/database.ts";
import { startBalancer, type Balancer } from "./balancer.ts";
import type { ManyOptions } from "./many.ts";
import { Heard, ready, send, upTo, useServers, type Program } from "./servers.ts";

/** One of several nodes gets SIGTERM. The test has real processes, PostgreSQL, and a load balancer that does not know about the shutdown. */

const start = useServers();
const database = useDatabase();
let folder = "";
let balancer: Balancer;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-drain-"));
  balancer = await startBalancer();
});
afterEach(async () => {
  balancer.close();
  await rm(folder, { recursive: true });
});

/** Leases do not expire. packages/server/test/engine/draining.test.ts, with a stopped clock, shows that no node needs to poll for released tasks. */
const onlyTold = { lease: { ttl: 3_600_000 } };

async function startNode(options: ManyOptions): Promise<{ program: Program; port: number; pid: number; url: string }> {
  const program = start({ database: database().url, publicUrl: balancer.url, ...onlyTold, ...options });
  const { pid, url } = await ready(program);
  return { program, pid, url, port: Number(new URL(url).port) };
}

describe("a node that gets SIGTERM", () => {
  test("leaves its tasks to another node at once, and its clients lose nothing", async () => {
    const [one, two] = await Promise.all([startNode({ grace: 100 }), startNode({})]);
    balancer.targets = [one.port, two.port];
    const chunks = 25;
    const hold = join(folder, crypto.randomUUID());
    let begun = 0;
    const stream = async (): Promise<Heard> => {
      const client = await connect(balancer.url);
      const heard = new Heard();
      for await (const event of client.sendStreamingMessage(JSON.stringify({ chunks, pause: 40, hold }))) {
        heard.add(event);
        if (heard.chunks.length !== 2 || event.artifactUpdate === undefined || (begun += 1) !== 15) continue;
        one.program.child.kill("SIGTERM");
        await writeFile(hold, "");
      }
      return heard;
    };
    const heard = await Promise.all(upTo(20).map(() => stream()));
    for (const each of heard) expect(each).toMatchObject({ chunks: upTo(chunks), state: "TASK_STATE_COMPLETED" });
    expect(heard.some(({ pids }) => pids.has(one.pid) && pids.has(two.pid))).toBe(true);
    expect(await one.program.ended).toEqual([null, "SIGTERM"]);
  });

  test("begins nothing new, lets its own turns finish, and ends streams of tasks that run elsewhere", async () => {
    const [one, two] = await Promise.all([startNode({ grace: 60_000 }), startNode({})]);
    balancer.targets = [one.port, two.port];
    const [finishOne, finishTwo] = [join(folder, "one"), join(folder, "two")];
    const own = await send(one.url, { chunks: 1, pause: 1, finish: finishOne }, false);
    const other = await send(two.url, { chunks: 1, pause: 1, finish: finishTwo }, false);
    const client = await connect(balancer.url);
    const follow = async (id: string): Promise<Heard> => {
      const heard = new Heard();
      for await (const event of client.subscribeToTask({ id })) {
        heard.add(event);
        if (event.task !== undefined) following += 1;
      }
      return heard;
    };
    let following = 0;
    const followers = [own.id, own.id, own.id, other.id, other.id, other.id].map((id) => follow(id));
    await expect.poll(() => following, { interval: 20 }).toBe(6);
    one.program.child.kill("SIGTERM");
    const status = (): Promise<number> =>
      fetch(`${one.url}/readyz`).then(
        ({ status: code }) => code,
        () => 0,
      );
    await expect.poll(status, { interval: 20 }).toBe(0);
    const works = await Promise.all(upTo(4).map(() => client.sendMessage(JSON.stringify({ chunks: 1, pause: 1 }))));
    for (const { task } of works) expect(task?.artifacts?.[0]?.parts[0]?.text).toBe(`0:${two.pid}`);
    // The other node's task ends while the first node is still stopping, so the task's followers have already moved to another node.
    writeFileSync(finishTwo, "");
    for (const { state } of await Promise.all(followers.slice(3))) expect(state).toBe("TASK_STATE_COMPLETED");
    expect(one.program.child.exitCode ?? one.program.child.signalCode).toBeNull();
    writeFileSync(finishOne, "");
    for (const { state } of await Promise.all(followers)) expect(state).toBe("TASK_STATE_COMPLETED");
    expect(await one.program.ended).toEqual([null, "SIGTERM"]);
    // The log counts no failure, however many streams are open.
    expect(one.program.log.filter(({ level }) => level === "warn" || level === "error")).toEqual([]);
  });
});

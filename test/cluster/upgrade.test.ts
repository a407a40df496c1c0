import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "@parley/a2a";
import { openConnection, defaultDriver, loadDriver } from "../../packages/sql/src/sqlite/libraries.ts";
import { useDatabase } from "../postgres/database.ts";
import { startBalancer } from "./balancer.ts";
import type { ManyOptions } from "./many.ts";
import { nextVersion } from "./next-release.ts";
import { Heard, ready, send, upTo, useServers, type Program } from "./servers.ts";

/**
 * Tests a rolling upgrade: nodes of this release and of the next one, whose tables have one more version (`next-release.ts`), run in parallel on one
 * database, as real processes, while clients follow their tasks.
 */

const start = useServers();
const database = useDatabase();
let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-upgrade-"));
});
afterAll(() => rm(folder, { recursive: true }));

interface Case {
  readonly store: () => Pick<ManyOptions, "file" | "database">;
  readonly next: number;
  /** Sets the version of the tables, like the release after the next one. */
  setVersion(version: number): Promise<void>;
}

const cases: Readonly<Record<string, Case>> = {
  PostgreSQL: {
    store: () => ({ database: database().url }),
    next: nextVersion.postgres,
    async setVersion(version) {
      await database().run(`INSERT INTO parley.migrations (version) VALUES (${version})`);
    },
  },
  SQLite: {
    store: () => ({ file: join(folder, "tasks.db") }),
    next: nextVersion.sqlite,
    async setVersion(version) {
      const path = join(folder, "tasks.db");
      const options = {
        path,
        driver: defaultDriver(),
        synchronous: "NORMAL",
        busyTimeout: 5_000,
        maxPages: undefined,
      } as const;
      const driver = await openConnection(await loadDriver(), options);
      driver.exec(`INSERT INTO migrations (version) VALUES (${version})`);
      driver.close();
    },
  },
};

describe.each(Object.entries(cases))("a rolling upgrade on %s", (_name, { store, next, setVersion }) => {
  test("loses nothing, forward and back, and a node that is two versions behind says so", async () => {
    const balancer = await startBalancer();
    const node = async (
      options: ManyOptions = {},
    ): Promise<{ program: Program; port: number; pid: number; url: string }> => {
      const program = start({ ...store(), publicUrl: balancer.url, looks: true, grace: 50, ...options });
      const { pid, url } = await ready(program);
      return { program, pid, url, port: Number(new URL(url).port) };
    };
    try {
      const before = await node();
      balancer.targets = [before.port];
      const finish = join(folder, crypto.randomUUID());
      const stream = async (heard: Heard): Promise<void> => {
        const client = await connect(balancer.url);
        const work = JSON.stringify({ pause: 40, until: finish });
        for await (const event of client.sendStreamingMessage(work)) heard.add(event);
      };
      const heard = upTo(8).map(() => new Heard());
      const streams = Promise.all(heard.map((each) => stream(each)));
      await expect.poll(() => heard.every((each) => each.chunks.length > 1), { interval: 20 }).toBe(true);

      // The next release migrates the tables while this release keeps running.
      const after = await node({ mode: "next release" });
      balancer.targets = [before.port, after.port];
      for (const { url, pid } of [before, after, before]) {
        const { artifacts, status } = await send(url, { chunks: 2, pause: 1 });
        expect(status.state).toBe("TASK_STATE_COMPLETED");
        expect(artifacts?.[0]?.parts.map(({ text }) => text)).toEqual([`0:${pid}`, `1:${pid}`]);
      }
      before.program.child.kill("SIGTERM");
      await expect.poll(() => heard.every(({ pids }) => pids.has(after.pid)), { interval: 20 }).toBe(true);

      // A node of this release starts on the new tables, and takes over the tasks again.
      const back = await node();
      const newer = expect.objectContaining({ level: "info", found: next, newest: next - 1 }) as unknown;
      expect(back.program.log).toContainEqual(newer);
      balancer.targets = [after.port, back.port];
      after.program.child.kill("SIGTERM");
      await expect.poll(() => heard.every(({ pids }) => pids.has(back.pid)), { interval: 20 }).toBe(true);
      await send(back.url, { chunks: 1, pause: 1 });
      writeFileSync(finish, "");
      await streams;
      for (const { chunks, state, pids } of heard) {
        expect(chunks).toEqual(upTo(chunks.length));
        expect(state).toBe("TASK_STATE_COMPLETED");
        expect(pids).toEqual(new Set([before.pid, after.pid, back.pid]));
      }

      await setVersion(next + 1);
      const late = start({ ...store() });
      expect((await late.ended)[0]).toBe(1);
      const own = `The database has version ${next + 1}, this release supports version ${next} and earlier: upgrade @parley/sql`;
      expect(late.errors()).toContain(own);
    } finally {
      balancer.close();
    }
  });
});

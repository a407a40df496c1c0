import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { postgresStore } from "@parley/sql/postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createProgram, run } from "../../packages/cli/src/program.ts";
import { recordedIo } from "../../packages/cli/test/support/io.ts";
import { newestVersion } from "../../packages/sql/src/postgres/migrations.ts";
import { useDatabase } from "../postgres/database.ts";

/** Tests that `parley db` migrates the tables of PostgreSQL before the servers that use these tables start. */

const database = useDatabase();
let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-db-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function db(args: readonly string[], env: Readonly<Record<string, string>> = { DATABASE_URL: database().url }) {
  const { io, out, err } = recordedIo({ env, cwd: folder });
  const code = await run(["db", ...args], io);
  return { code, out: out(), err: err() };
}

/** Stores data for each owner whose name occurs in the examples. */
async function fill(): Promise<void> {
  const store = await postgresStore({ database: database().url, connections: 2 });
  for (const owner of [null, "acme"].map((organization) => JSON.stringify([organization, "ada"]))) {
    const effects = [{ effect: "contextState", value: "1" }] as const;
    await store.append([{ context: { agent: "/", owner, contextId: "c" }, effects }]);
  }
  const json = JSON.stringify({ id: "TASK", contextId: "c", status: { state: "TASK_STATE_WORKING" } });
  const about = { kind: "task", state: "TASK_STATE_WORKING", time: 1, actor: "user", turn: 1, attempt: 1 } as const;
  const run = { turn: 1, attempt: 4, input: 1, deaths: 3, suspended: true } as const;
  for (const agent of ["/", "/planner"]) {
    const task = { agent, owner: "bob", taskId: "TASK" };
    const effects = [{ effect: "run", run }] as const;
    await store.append([{ task, create: { contextId: "c" }, records: [{ ...about, json }], effects }]);
  }
  await store.close();
}

describe("parley db", () => {
  test("creates the tables once, and reports their version", async () => {
    const missing = await db(["status"]);
    expect(missing).toMatchObject({
      code: 1,
      out: "Parley has no schema parley. Create it with parley db migrate.\n",
    });
    expect(await db(["migrate"])).toEqual({
      code: 0,
      out: `Created schema parley with version ${newestVersion}.\n`,
      err: "",
    });
    expect(await db(["migrate", "--json"])).toMatchObject({
      code: 0,
      out: `{"schema":"parley","found":${newestVersion},"newest":${newestVersion}}\n`,
    });
    const status = await db(["status", "--database-url", database().url], {});
    expect(status).toEqual({
      code: 0,
      out: `Schema parley has version ${newestVersion}, the version of this release.\n`,
      err: "",
    });
  });

  test("ops suggests a command for the same database, without the password of its URL", async () => {
    await fill();
    const { io, out, err } = recordedIo();
    const { url } = database();
    expect(new URL(url).password).not.toBe("");
    const code = await run(["ops", "why", "TASK", "--agent", "/", "--database-url", url], io);
    expect({ code, err: err() }).toEqual({ code: 0, err: "" });
    expect(out()).toMatch(/\n {2}\$ parley ops resume TASK --database-url "\$DATABASE_URL"\n$/);
  });

  test("identifies tables of a newer release", async () => {
    await db(["migrate", "--schema", "newer"]);
    await database().run("INSERT INTO newer.migrations (version) VALUES (99)");
    const status = await db(["status", "--schema", "newer"]);
    expect(status.code).toBe(1);
    const own = `This release supports up to version ${newestVersion + 1}. Upgrade this program.`;
    expect(status.out).toContain(`Schema newer has version 99. ${own}`);
    const migrated = await db(["migrate", "--schema", "newer"]);
    expect(migrated).toMatchObject({ code: 1, out: "" });
    expect(migrated.err).toContain("upgrade @parley/sql");
  });

  test("names tables of the next release, which this one works with", async () => {
    await db(["migrate", "--schema", "next"]);
    await database().run(`INSERT INTO next.migrations (version) VALUES (${newestVersion + 1})`);
    const sentence = `Schema next has version ${newestVersion + 1} of the next release. This release (version ${newestVersion}) works with it.\n`;
    expect(await db(["status", "--schema", "next"])).toEqual({ code: 0, out: sentence, err: "" });
    expect(await db(["migrate", "--schema", "next"])).toEqual({ code: 0, out: sentence, err: "" });
  });

  test("shows the statements of a migration, and changes nothing", async () => {
    const planned = await db(["migrate", "--dry-run", "--schema", "dry"]);
    expect(planned.code).toBe(0);
    expect(planned.out).toMatch(/^-- version 1 of schema dry\n/);
    expect((await db(["status", "--schema", "dry"])).out).toContain("Parley has no schema dry");
    await database().run(`CREATE SCHEMA dry; ${planned.out}`);
    const { rows } = await database().run(
      "SELECT count(*)::int AS n FROM information_schema.tables WHERE table_schema = 'dry'",
    );
    expect((rows[0] as { n: number }).n).toBeGreaterThan(10);
    await db(["migrate", "--schema", "made"]);
    const nothing = `-- nothing to do: schema made has version ${newestVersion}, this release version ${newestVersion}\n`;
    expect((await db(["migrate", "--dry-run", "--schema", "made"])).out).toBe(nothing);
  });

  test("says what is missing or wrong, without the password", async () => {
    expect(await db(["status"], {})).toMatchObject({ code: 2, out: "" });
    expect((await db(["status"], {})).err).toContain("no database: pass --database-url or set DATABASE_URL");
    const wrong = new URL(database().url);
    wrong.password = "wrong-password-of-a-test";
    wrong.pathname = "/no_such_database";
    const failed = await db(["migrate", "--database-url", wrong.href], {});
    expect(failed.code).toBe(1);
    expect(failed.err).toMatch(/The database refused the user|There is no such database/);
    expect(failed.err).not.toContain("wrong-password-of-a-test");
  });

  test("purge waits for tasks that another process holds, and says how many remain if it keeps them", async () => {
    await db(["migrate", "--schema", "held"]);
    const store = await postgresStore({ database: database().url, schema: "held", connections: 2 });
    const state = "TASK_STATE_COMPLETED";
    for (const taskId of ["free", "held"]) {
      const json = JSON.stringify({ id: taskId, contextId: "c", status: { state }, history: [] });
      const record = { kind: "task", state, json, time: 1, actor: "user", turn: 1, attempt: 1 } as const;
      const task = { agent: "/", owner: "ada", taskId };
      await store.append([{ task, create: { contextId: "c" }, records: [record] }]);
    }
    const holder = new pg.Client({ connectionString: database().url });
    await holder.connect();
    const hold = "BEGIN; SELECT 1 FROM held.tasks WHERE id = 'held' FOR UPDATE";
    const args = ["purge", "--before", "0d", "--yes", "--schema", "held"];
    await holder.query(hold);
    expect(await db(args)).toMatchObject({
      code: 1,
      out: "1 task and 0 conversations without tasks deleted.\n",
      err: expect.stringContaining("1 task left, locked by another process. Run the command again"),
    });
    const again = db(args);
    await new Promise((resolve) => setImmediate(resolve));
    await holder.query("ROLLBACK");
    expect(await again).toMatchObject({ code: 0, out: "1 task and 1 conversation without tasks deleted.\n" });
    await holder.end();
    await store.close();
  });

  test("the examples of its help run", async () => {
    const group = createProgram(recordedIo().io, () => {}).commands.find((command) => command.name() === "db");
    const names = (group?.commands ?? []).map((command) => command.name());
    expect(names).toEqual(["migrate", "status", "purge", "erase", "export", "scrub"]);
    for (const words of [[], ...names.map((name) => [name])]) {
      const { out } = await db([...words, "--help"]);
      const examples = Array.from(out.matchAll(/^ {2}\$ parley db (.*)$/gm), ([, line = ""]) => line.split(" "));
      expect(examples.length).toBeGreaterThan(1);
      for (const example of examples) {
        await fill();
        const args = example.map((word) => (word.startsWith("postgres://") ? database().url : word));
        expect((await db(args)).code, args.join(" ")).toBe(0);
      }
    }
  });
});

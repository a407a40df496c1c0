import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { afterAll, describe, expect, it } from "vitest";
import { sqliteStore } from "@parley/sql/sqlite";
import { compiled } from "../../../../test/programs.ts";
import { diskFolder } from "../../../../test/temporary.ts";
import { threadFile, threadWriter } from "../../src/sqlite/thread-writer.ts";

const folder = await mkdtemp(join(diskFolder(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

const alice = { agent: "agent", owner: "alice" };
const require = createRequire(import.meta.url);

/** Runs a script to its end. Returns its output and its exit code or signal. */
async function run(script: string, ...args: readonly string[]): Promise<{ said: string; ended: unknown }> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  const [code, signal] = (await once(child, "close")) as unknown[];
  return { said, ended: signal ?? code };
}

describe("a process that ends without closing its store", () => {
  const appender = compiled(fileURLToPath(new URL("appender.ts", import.meta.url)));

  it("exits with its own code in the middle of its appends, and loses none that was acknowledged", async () => {
    const path = join(folder, "exit.db");
    const acknowledged: string[] = [];
    for (let life = 1; life <= 5; life += 1) {
      const { said, ended } = await run(appender, path, String(life), String(1 + life * 7));
      expect(ended).toBe(0);
      acknowledged.push(...said.trim().split("\n"));
    }
    const store = await sqliteStore({ path });
    expect(acknowledged.length).toBeGreaterThan(2 * 5 * 7);
    for (const id of acknowledged) expect(await store.head(alice, id), id).toMatchObject({ seq: 3 });
    await store.close();
  });

  it("is kept alive only by an append in progress", async () => {
    const script = join(folder, "alive.mjs");
    await writeFile(
      script,
      `import { sqliteStore } from ${JSON.stringify(new URL("../../dist/sqlite/index.js", import.meta.url))};
       const store = await sqliteStore({ path: ${JSON.stringify(join(folder, "alive.db"))} });
       store.watch(() => {});
       void store.append([]).then(() => console.log("stored"));`,
    );
    expect(await run(script)).toEqual({ said: "stored\n", ended: 0 });
  });
});

describe("a thread that has ended", () => {
  const options = {
    path: ":memory:",
    driver: "libsql",
    synchronous: "NORMAL",
    busyTimeout: 0,
    maxPages: undefined,
  } as const;

  it.each([
    ["ends", "process.exit(3)", undefined],
    ["throws", "throw new RangeError('out of it')", { name: "RangeError" }],
  ])("fails waiting and later calls, when it %s", async (_, code, cause) => {
    const file = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
    const writer = threadWriter(file, options);
    const refusal = { code: "Unavailable", message: "The writer thread has exited", ...(cause && { cause }) };
    const first = writer.append([]);
    await expect(first).rejects.toMatchObject(refusal);
    await expect(writer.append([])).rejects.toMatchObject(refusal);
    await expect(writer.close()).rejects.toMatchObject(refusal);
  });
});

describe("a program that was bundled into one file", () => {
  it("writes without a thread", async () => {
    const outfile = join(folder, "bundled.mjs");
    const libsql = require.resolve("libsql");
    await build({
      stdin: {
        contents: `export { sqliteStore } from "@parley/sql/sqlite";
                   export { threadFile } from "../../src/sqlite/thread-writer.ts";`,
        resolveDir: fileURLToPath(new URL(".", import.meta.url)),
      },
      bundle: true,
      platform: "node",
      format: "esm",
      conditions: ["@parley/source"],
      alias: { libsql },
      external: [libsql],
      outfile,
    });
    const bundle = (await import(pathToFileURL(outfile).href)) as {
      readonly sqliteStore: typeof sqliteStore;
      readonly threadFile: typeof threadFile;
    };
    expect(bundle.threadFile()).toBeUndefined();
    expect(threadFile()).toBeInstanceOf(URL);
    const store = await bundle.sqliteStore({ path: join(folder, "bundled.db") });
    expect(await store.append([])).toEqual([]);
    await store.close();
  });
});

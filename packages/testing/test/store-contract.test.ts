import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { memoryStore, type Store } from "@parley/server";
import { storeContract, storeHistories } from "@parley/testing";

/** The suite finds the bugs of a store, even on a runner without `expect`. */

interface Found {
  readonly name: string;
  readonly error: unknown;
}

/** Runs the suite like a test runner, and returns the failed cases: all, or the first `most`, with the random histories first. */
async function failuresOf(create: () => Store, most = Infinity): Promise<readonly Found[]> {
  const cases: { readonly name: string; readonly body: () => Promise<void> }[] = [];
  storeContract(
    { describe: (_, body) => body(), it: (name, body) => cases.push({ name, body }) },
    { create, histories: 50 },
  );
  expect(cases.length).toBeGreaterThan(50);
  const ordered =
    most === Infinity
      ? cases
      : cases.toSorted((one, other) => Number(other.name === random) - Number(one.name === random));
  const failures: Found[] = [];
  for (const { name, body } of ordered) {
    await body().catch((error: unknown) => failures.push({ name, error }));
    if (failures.length >= most) break;
  }
  return failures;
}

/** A store with some methods replaced. */
function changed(store: Store, change: (store: Store) => Partial<Store>): Store {
  const own = change(store);
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const value: unknown = own[name] ?? target[name];
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

const random = "the store behaves like the reference through appends, sweeps, reads and crashes";

it("passes a store that keeps every rule", async () => {
  expect(await failuresOf(() => memoryStore())).toEqual([]);
});

const wrong: Readonly<Record<string, (store: Store) => Partial<Store>>> = {
  "forgets what is appended after the first item": (store) => ({
    append: async (items) => {
      const [first] = await store.append(items.slice(0, 1));
      return items.flatMap(() => (first === undefined ? [] : [first]));
    },
  }),
  "shows tasks to those who do not own them": (store) => ({
    head: (scope, taskId) => store.head({ agent: scope.agent }, taskId),
  }),
  "remembers no idempotency keys": () => ({ once: () => undefined }),
  "omits the last record of a page of the log": (store) => ({
    read: async (...asked) => {
      const page = await store.read(...asked);
      return page && { ...page, records: page.records.slice(0, -1) };
    },
  }),
  "counts a task too many": (store) => ({
    list: async (...asked) => {
      const page = await store.list(...asked);
      return { ...page, total: page.total + 1 };
    },
  }),
  "returns rows of features before they are due": (store) => ({
    dueFeatures: (query) => store.dueFeatures({ ...query, now: Number.MAX_SAFE_INTEGER }),
  }),
  "changes rows of features whatever they are": (store) => ({
    append: (items) =>
      store.append(
        items.map((item) => {
          if ("context" in item || item.effects === undefined) return item;
          const effects = item.effects.map((effect) => {
            if (effect.effect !== "feature" || effect.op === "wake") return effect;
            const { if: _, ...rest } = effect;
            return rest;
          });
          return { ...item, effects };
        }),
      ),
  }),
  "deletes nothing": () => ({ sweep: async () => ({ deleted: 0, compacted: 0, more: false }) }),
};

it.each(Object.keys(wrong))("finds a store that %s, by its rules and by random histories", async (name) => {
  const failures = await failuresOf(() => changed(memoryStore(), wrong[name] ?? (() => ({}))), 2);
  expect(failures).toHaveLength(2);
  expect(failures.map((failure) => failure.name)).toContain(random);
});

it("shows the first difference, and how to repeat the history", async () => {
  const create = (): Store =>
    changed(memoryStore(), (store) => ({
      list: async (...asked) => ({ ...(await store.list(...asked)), total: -1 }),
    }));
  const error: unknown = await storeHistories({ create }).catch((thrown: unknown) => thrown);
  expect(String(error)).toMatch(/seed: -?\d+/);
  expect(error).toMatchObject({ cause: { message: "Not equal: found -1, expected 0" } });
});

it("names the package to install if fast-check is missing", async () => {
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  const project = await mkdtemp(join(tmpdir(), "parley-suite-"));
  onTestFinished(() => rm(project, { recursive: true }));
  for (const name of ["a2a", "server", "testing"]) {
    const from = join(root, "packages", name);
    const to = join(project, "node_modules", "@parley", name);
    await mkdir(to, { recursive: true });
    await cp(join(from, "dist"), join(to, "dist"), { recursive: true });
    await cp(join(from, "package.json"), join(to, "package.json"));
    const { dependencies } = JSON.parse(await readFile(join(from, "package.json"), "utf8")) as { dependencies: object };
    for (const other of Object.keys(dependencies).filter((one) => !one.startsWith("@parley/"))) {
      await cp(join(root, "node_modules", other), join(project, "node_modules", other), { recursive: true });
    }
  }
  await writeFile(
    join(project, "main.mjs"),
    `import { memoryStore } from "@parley/server";
     import { storeHistories } from "@parley/testing";
     await storeHistories({ create: () => memoryStore() }).catch((error) => console.log(error.message));`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, ["main.mjs"], { cwd: project });
  expect(stdout).toBe("Random histories need the package fast-check: npm install --save-dev fast-check\n");
});

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { Declarations, entries, isValue } from "./entries.ts";

/**
 * The number of names that each entry point may export. Readers must be able to take in the whole list, so put a new name where its users
 * look for it, and raise a number here only on purpose.
 */
const most: Readonly<Record<string, number>> = {
  "@parley/a2a": 60,
  "@parley/a2a/model": 60,
  "@parley/a2a/protocol": 60,
  "@parley/a2a/auth": 60,
  "@parley/a2a/credentials": 50,
  "@parley/a2a/cards": 25,
  "@parley/a2a/extensions": 47,
  "@parley/a2a/webhooks": 35,
  "@parley/server": 60,
  "@parley/server/store": 173,
  "@parley/extensions/agp": 36,
  "@parley/extensions/secure-passport": 34,
  "@parley/extensions/task-search": 6,
  "@parley/extensions/traceability": 20,
  "@parley/extensions/timestamp": 10,
  "@parley/extensions/oid4vp": 17,
  "@parley/extensions/x402": 48,
  "@parley/extensions/a2ui": 35,
  "@parley/testing": 42,
  "@parley/conform": 40,
  "@parley/console": 18,
  "@parley/frameworks/ag-ui": 2,
  "@parley/frameworks/ai-sdk": 25,
  "@parley/frameworks/chat": 6,
  "@parley/frameworks/claude": 9,
  "@parley/frameworks/openai-agents": 4,
  "@parley/frameworks/mastra": 8,
  "@parley/frameworks/langgraph": 11,
  "@parley/nats": 4,
  "@parley/react": 20,
  "@parley/mcp": 5,
  "@parley/mcp/tools": 26,
  "@parley/telemetry": 8,
  "@parley/telemetry/prometheus": 3,
  "@parley/grpc": 5,
  "@parley/grpc/client": 5,
  "@parley/grpc/web": 5,
  "@parley/node": 61,
  "@parley/node/express": 8,
  "@parley/node/fastify": 8,
  "@parley/sql/durable-object": 8,
  "@parley/sql/postgres": 25,
  "@parley/sql/sqlite": 15,
};

/** The number of keys in `exports` of all packages together. A pattern counts as one key, as in the manifest. */
const maxKeys = 38;

/** A server binding and its client binding have the same name. The entry point shows for which side a binding is. */
const onBothSides: readonly string[] = ["jsonRpcBinding", "restBinding"];

/**
 * Names that both agents and clients use. Both root entry points and `model` export the same values, so that neither a program with only a
 * client nor a client binding loads the server for them.
 */
const shared: readonly string[] = ["A2AError", "data", "file", "hasCode", "text"];

/** `@parley/node` re-exports names of these packages, so that one import is enough there. */
const core = ["@parley/a2a", "@parley/server"];

const declarations = new Declarations();
const all = entries().map(({ name, file }) => ({ name, exported: declarations.exportsOf(file) }));

describe("the entry points", () => {
  test.each(all)("$name exports no more names than listed", ({ name, exported }) => {
    expect(most, `${name} has no number`).toHaveProperty([name]);
    expect(exported.size, [...exported.keys()].join(" ")).toBeGreaterThan(0);
    expect(exported.size, [...exported.keys()].join(" ")).toBeLessThanOrEqual(most[name] ?? 0);
  });

  test("are the ones with a limit", () => {
    expect(Object.keys(most).toSorted()).toEqual(all.map(({ name }) => name).toSorted());
  });

  test("are few enough for a reader to find the right one", () => {
    const folder = fileURLToPath(new URL("../../packages", import.meta.url));
    const keys = readdirSync(folder).flatMap((name) => {
      const text = readFileSync(join(folder, name, "package.json"), "utf8");
      const { exports = {} } = JSON.parse(text) as { readonly exports?: object };
      return Object.keys(exports).flatMap((key) => (key === "./package.json" ? [] : [`${name} ${key}`]));
    });
    expect(keys.length, keys.join("\n")).toBeLessThanOrEqual(maxKeys);
  });

  const ofCore = all.filter(({ name }) => core.some((each) => name === each || name.startsWith(`${each}/`)));

  test("of the core export a value at only one place, except what both sides use", () => {
    const places = new Map<string, string[]>();
    for (const { name: entry, exported } of ofCore) {
      for (const one of exported.values())
        if (isValue(one)) places.set(one.name, [...(places.get(one.name) ?? []), entry]);
    }
    const repeated = [...places].filter(([name, where]) => where.length > 1 && !onBothSides.includes(name));
    const where = ["@parley/a2a", "@parley/a2a/model", "@parley/server"];
    expect(Object.fromEntries(repeated)).toEqual(Object.fromEntries(shared.map((name) => [name, where])));
  });

  test("of the core use one name for one thing", () => {
    const meanings = new Map<string, Set<string>>();
    for (const { exported } of ofCore) {
      for (const { name, module, local } of exported.values()) {
        meanings.set(name, (meanings.get(name) ?? new Set()).add(`${module.file}#${local}`));
      }
    }
    const ambiguous = [...meanings].filter(([, found]) => found.size > 1);
    expect(ambiguous.filter(([name]) => !onBothSides.includes(name))).toEqual([]);
  });
});

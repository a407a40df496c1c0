import { describe, expect, test } from "vitest";
import { Declarations, entries, isValue } from "./entries.ts";

/**
 * How many names each entry point may export. A reader has to take them in at once, so put a new name where its users look
 * for it, and raise a number here only on purpose.
 */
const most: Readonly<Record<string, number>> = {
  "@parley/a2a": 118,
  "@parley/a2a/model": 180,
  "@parley/a2a/client": 72,
  "@parley/a2a/protocol": 75,
  "@parley/a2a/transport": 60,
  "@parley/a2a/transport/client": 20,
  "@parley/a2a/wires": 25,
  "@parley/a2a/store": 149,
  "@parley/a2a/push": 6,
  "@parley/a2a/auth": 60,
  "@parley/a2a/blobs": 16,
  "@parley/a2a/credentials": 50,
  "@parley/a2a/cards": 25,
  "@parley/a2a/display": 6,
  "@parley/a2a/extensions/agp": 36,
  "@parley/a2a/extensions/secure-passport": 34,
  "@parley/a2a/extensions/resumable-streams": 3,
  "@parley/a2a/extensions/idempotent-sends": 3,
  "@parley/a2a/extensions/task-search": 6,
  "@parley/a2a/extensions/traceability": 20,
  "@parley/a2a/extensions/timestamp": 10,
  "@parley/a2a/extensions/oid4vp": 17,
  "@parley/a2a/extensions/x402": 48,
  "@parley/a2a/extensions/a2ui": 35,
  "@parley/a2a/extensions": 45,
  "@parley/a2a/fetch": 3,
  "@parley/a2a/net": 12,
  "@parley/a2a/webhooks": 35,
  "@parley/a2a/testing": 30,
  "@parley/conform": 40,
  "@parley/nats": 4,
  "@parley/grpc": 5,
  "@parley/grpc/client": 5,
  "@parley/grpc/web": 5,
  "@parley/node": 30,
  "@parley/node/blobs": 1,
  "@parley/node/express": 8,
  "@parley/node/fastify": 8,
  "@parley/sql/durable-object": 8,
  "@parley/sql/postgres": 25,
  "@parley/sql/sqlite": 15,
  "@parley/sql/webhooks": 5,
};

/** Bindings have the same name at a server and at a client, and the entry point tells which of the two it is. */
const onBothSides: readonly string[] = ["jsonRpcBinding", "restBinding"];

/**
 * What agents and clients both use. It is the same value at the root, in `client` and in `model`, so that a program that is only
 * a client, and a binding for clients, do not load the server for it.
 */
const shared: readonly string[] = ["A2AError", "data", "file", "hasCode", "text"];

const declarations = new Declarations();
const all = entries().map(({ name, file }) => ({ name, exported: declarations.exportsOf(file) }));

describe("the entry points", () => {
  test.each(all)("$name exports no more names than it says", ({ name, exported }) => {
    expect(most, `${name} has no number`).toHaveProperty([name]);
    expect(exported.size, [...exported.keys()].join(" ")).toBeGreaterThan(0);
    expect(exported.size, [...exported.keys()].join(" ")).toBeLessThanOrEqual(most[name] ?? 0);
  });

  test("are the ones that have a number", () => {
    expect(Object.keys(most).toSorted()).toEqual(all.map(({ name }) => name).toSorted());
  });

  test("of the core export a value at one place only, except what both sides use", () => {
    const places = new Map<string, string[]>();
    for (const { name: entry, exported } of all.filter(({ name }) => name.startsWith("@parley/a2a"))) {
      for (const one of exported.values())
        if (isValue(one)) places.set(one.name, [...(places.get(one.name) ?? []), entry]);
    }
    const repeated = [...places].filter(([name, where]) => where.length > 1 && !onBothSides.includes(name));
    const where = ["@parley/a2a", "@parley/a2a/model", "@parley/a2a/client"];
    expect(Object.fromEntries(repeated)).toEqual(Object.fromEntries(shared.map((name) => [name, where])));
  });

  test("of the core mean one thing by one name", () => {
    const meanings = new Map<string, Set<string>>();
    for (const { exported } of all.filter(({ name }) => name.startsWith("@parley/a2a"))) {
      for (const { name, module, local } of exported.values()) {
        meanings.set(name, (meanings.get(name) ?? new Set()).add(`${module.file}#${local}`));
      }
    }
    const ambiguous = [...meanings].filter(([, found]) => found.size > 1);
    expect(ambiguous.filter(([name]) => !onBothSides.includes(name))).toEqual([]);
  });
});

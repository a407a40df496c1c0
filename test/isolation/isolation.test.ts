import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore, type Store } from "@parley/server";
import { sqliteStore } from "@parley/sql/sqlite";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { placeOf, stores as kinds, type Place } from "../behaviour/stores.ts";
import { drivers } from "../../packages/sql/test/sqlite/drivers.ts";
import { times } from "../counts.ts";
import { names, program, type Call, type Name } from "./program.ts";
import { run, type Seen } from "./run.ts";
import { marks, openWorld } from "./world.ts";

/*
 * Two principals call everything that the API has, at random, and use each other's ids everywhere: tasks, contexts,
 * references, streams, webhooks, page tokens, idempotency keys. Each of them sees what it would see if the other one had never
 * been there, and all ids of the other one were made up (A2A 1.0 §3.1.4, §7.5, §13.1).
 */

const folder = await mkdtemp(join(tmpdir(), "parley-isolation-"));
const places: Place[] = [];
afterAll(async () => {
  await rm(folder, { recursive: true });
  for (const place of places) await place.remove();
});
let files = 0;

type Opened = readonly [name: string, open: () => Store | Promise<Store>];

const stores = kinds.flatMap((kind): readonly Opened[] => {
  if (kind === "memory") return [[kind, memoryStore]];
  if (kind === "PostgreSQL") return [[kind, onPostgres]];
  return drivers.map((driver) => {
    const open = () => sqliteStore({ path: join(folder, `${(files += 1)}.db`), driver });
    return [`SQLite by ${driver}`, open];
  });
});

async function onPostgres(): Promise<Store> {
  const place = await placeOf("PostgreSQL");
  places.push(place);
  return place.open();
}

/** What each principal sees in a separate world. */
async function seen(
  store: Store,
  calls: readonly Call[],
  who: readonly Name[],
  ownerOf?: () => string,
): Promise<Record<Name, Seen>> {
  const world = await openWorld(store, ownerOf && { ownerOf });
  try {
    return await run(world, calls, who);
  } finally {
    await world.close();
  }
}

describe.each(stores)("two principals of a server with its tasks in %s", (name, open) => {
  test("see nothing of each other, whatever they call with whatever ids", async () => {
    const isolated = fc.asyncProperty(program, async (calls) => {
      const together = await seen(await open(), calls, names);
      for (const [name, other] of [names, [...names].reverse()] as [Name, Name][]) {
        expect(JSON.stringify(together[name])).not.toContain(marks[other]);
        const alone = await seen(await open(), calls, [name]);
        expect(together[name]).toEqual(alone[name]);
      }
    });
    await fc.assert(isolated, { numRuns: times(1, name === "PostgreSQL" ? 8 : 15), endOnFailure: true });
  });
});

test("this test detects what a server shows to the wrong principal", async () => {
  const send = { kind: "send", what: "ask", marked: true, messageId: 0, stream: false, webhook: false } as const;
  const how = { binding: "JSONRPC", version: "1.0" } as const;
  const calls: readonly Call[] = [
    { ...how, by: "ada", act: { ...send, named: 0 } },
    { ...how, by: "bob", act: { kind: "list", pageSize: 1 } },
    { ...how, by: "bob", act: { ...send, named: 0 } },
    { ...how, by: "bob", act: { kind: "hook", task: 0, hook: 1 } },
    { ...how, by: "bob", act: { kind: "cancel", task: 0 } },
  ];
  const shared = (await seen(memoryStore(), calls, names, () => "everybody")).bob;
  const alone = (await seen(memoryStore(), calls, ["bob"])).bob;
  for (const at of [1, 2, 3, 4]) expect([at, shared.answers[at]]).not.toEqual([at, alone.answers[at]]);
  for (const at of [1, 2, 4]) expect(JSON.stringify(shared.answers[at])).toContain(marks.ada);
  expect(shared.deliveries.join()).toContain("CANCELED");
  expect((await seen(memoryStore(), calls, names)).bob).toEqual(alone);
});

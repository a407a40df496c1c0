import type { Server } from "@parley/node";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Test } from "../src/acts/format.ts";
import { ownSuites } from "../src/acts/read.ts";
import { startDamaged } from "./damage.ts";
import { times } from "../../../test/counts.ts";
import { mutants, type Mutant } from "./mutants.ts";
import { startOfficialActs } from "./official.ts";
import { conform, credentials, idsOf, startParley, type Configuration } from "./support.ts";

const configurations: readonly Configuration[] = ["plain", "silent", "guarded", "required"];
/** In a short run every sixth of them; `npm run test:long` starts them all. */
const apart = times(6, 1);
const tried = mutants.filter((_, at) => at % apart === 0);
const servers: Server[] = [];
const urls = new Map<Mutant["server"], string>();
let official: Awaited<ReturnType<typeof startOfficialActs>>;

beforeAll(async () => {
  for (const method of ["log", "warn", "error"] as const) vi.spyOn(console, method).mockImplementation(() => {});
  for (const configuration of configurations) {
    const server = await startParley(configuration);
    servers.push(server);
    urls.set(configuration, server.url);
  }
  official = await startOfficialActs();
  urls.set("official", official.url);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await Promise.all(servers.map((server) => server.close({ grace: 0 })));
  await official.close();
});

describe("a server with a single mistake fails", () => {
  test.concurrent.each(tried)(
    "$name",
    async ({ server = "plain", damage, breaks }) => {
      const damaged = await startDamaged(urls.get(server)!, damage);
      try {
        const known = server === "guarded" ? credentials : {};
        const { bindings, report } = await conform(damaged.url, { filter: breaks, ...known, stepTimeout: 8_000 });
        for (const [transport, entries] of Object.entries(bindings)) {
          expect(idsOf(entries, "pass"), transport).toEqual([]);
          expect(idsOf(entries, "error"), transport).toEqual([]);
        }
        const failed = new Set(Object.values(bindings).flatMap((entries) => idsOf(entries, "fail")));
        expect([...failed].sort()).toEqual([...new Set(breaks)].sort());
        const must = Object.values(bindings).flatMap((entries) => entries.filter(({ level }) => level === "must"));
        expect(report.verdict.result === "broken").toBe(must.some(({ result }) => result === "fail"));
      } finally {
        await damaged.close();
      }
    },
    120_000,
  );
});

test("the proxy alone breaks nothing", async () => {
  const between = await startDamaged(urls.get("plain")!, {});
  try {
    const { bindings, report } = await conform(between.url, { stepTimeout: 100_000 });
    for (const [transport, entries] of Object.entries(bindings)) {
      const failures = entries.flatMap(({ id, result, failure }) => (result === "fail" ? [{ id, failure }] : []));
      expect(failures, transport).toEqual([]);
    }
    expect(Object.keys(bindings)).toEqual(["jsonrpc", "rest", "jsonrpc 0.3", "rest 0.3"]);
    expect(report.verdict.broken).toBe(0);
  } finally {
    await between.close();
  }
}, 180_000);

async function ownTests(): Promise<readonly Test[]> {
  const suites = await ownSuites();
  return suites.flatMap(({ tests }) => tests);
}

test("every check of the suite cites a section", async () => {
  expect((await ownTests()).filter(({ specRef }) => specRef === undefined || !specRef.includes("§"))).toEqual([]);
});

test("every check of the suite fails on one of these servers", async () => {
  const ids = (await ownTests()).map(({ id }) => id);
  const found = new Set(mutants.flatMap(({ breaks }) => breaks));
  expect(ids.length).toBeGreaterThan(100);
  expect(ids.filter((id) => !found.has(id))).toEqual([]);
});

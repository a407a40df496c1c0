import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { fakeClock } from "@parley/testing";
import { cardKeySet, makeCardKey, signCard, verifyCard } from "../../src/cards/index.ts";
import { A2AError } from "../../src/model/index.ts";
import { addressKind, addressProblem, guardedFetch, type Dialer } from "../../src/net/index.ts";
import { fullCard } from "../cards/given.ts";
import { hostileAnswers, hostileUrls } from "./hostile-urls.ts";

/** Tests attempts to make a server call services that only the server can reach. */

const untouched: Dialer = {
  resolve: () => Promise.reject(new Error("was resolved")),
  fetch: () => Promise.reject(new Error("was called")),
};

/** Returns the `A2AError` of a call. An invalid argument causes a different kind of error. */
async function refusalOf(work: Promise<unknown>): Promise<A2AError> {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  if (error instanceof A2AError) return error;
  throw new Error(`not refused: ${String(error)}`);
}

describe("an untrusted URL", () => {
  it("is tested in at least 200 variants", () => {
    expect(new Set(hostileUrls.map(([, url]) => url)).size).toBeGreaterThanOrEqual(200);
  });

  test.each(hostileUrls)("is rejected before anything is resolved or called: %s", async (_name, url) => {
    for (const dialer of [untouched, undefined]) {
      expect((await refusalOf(guardedFetch({}, dialer)(url))).code).toBe("InvalidParams");
    }
    expect(await addressProblem(url, {}, untouched)).toBeTypeOf("string");
  });

  it("is rejected on a port that another protocol listens on", async () => {
    const fetch = guardedFetch({}, untouched);
    for (let port = 1; port < 1024; port += 1) {
      if (port === 80 || port === 443) continue;
      expect((await refusalOf(fetch(`https://example.com:${port}/`))).message).toMatch(/port|not an absolute URL/);
    }
  });
});

describe("an untrusted host name", () => {
  test.each(hostileAnswers)("is rejected if it resolves to %j, alone or among others", async (answer) => {
    const family = answer.includes(":") ? 6 : 4;
    for (const answers of [[answer], ["8.8.8.8", answer], [answer, "2606:4700::1111"]]) {
      const resolve: Dialer["resolve"] = async () => answers.map((address) => ({ address, family }));
      expect((await refusalOf(guardedFetch({}, { ...untouched, resolve })("https://rebind.example/"))).code).toBe(
        "InvalidParams",
      );
    }
  });

  it("is called at the checked addresses, however often its answers change (DNS rebinding)", async () => {
    const anyAddress = fc.oneof(
      fc.constantFrom(...hostileAnswers),
      fc.constantFrom("8.8.8.8", "1.1.1.1", "2606:4700::1111"),
    );
    const answersOf = fc.array(fc.array(anyAddress, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(answersOf, async (answers) => {
        let asked = 0;
        const called: string[][] = [];
        const fetch = guardedFetch(
          {},
          {
            resolve: async () => (answers[asked++] ?? []).map((address) => ({ address, family: 4 })),
            async fetch(_url, addresses) {
              called.push(addresses.map(({ address }) => address));
              return new Response("answer");
            },
          },
        );
        while (asked < answers.length) await fetch("https://rebind.example/").catch(() => undefined);
        // Each call makes one lookup, and goes only to the resolved addresses.
        expect(asked).toBe(answers.length);
        const allowed = answers.filter((each) => each.every((address) => addressKind(address) === "global"));
        expect(called).toEqual(allowed);
      }),
    );
  });
});

describe("a redirect", () => {
  const locations = ["http://127.0.0.1/", "http://[::ffff:a9fe:a9fe]/", "//localhost/", "/again", "file:///etc/passwd"];
  test.each(locations.flatMap((to) => [301, 302, 303, 307, 308].map((status) => [status, to] as const)))(
    "with %i to %s is returned as an answer, and not followed",
    async (status, location) => {
      const called: string[] = [];
      const fetch = guardedFetch(
        {},
        {
          resolve: async () => [{ address: "8.8.8.8", family: 4 }],
          async fetch(url) {
            called.push(url.href);
            return new Response(null, { status, headers: { location } });
          },
        },
      );
      expect((await fetch("https://example.com/")).status).toBe(status);
      expect(called).toEqual(["https://example.com/"]);
    },
  );
});

describe("a key set that a card names", () => {
  it("is not read if the name resolves elsewhere by then (A2A 1.0 §8.4.3)", async () => {
    const key = await makeCardKey();
    const set = JSON.stringify(await cardKeySet([key]));
    const clock = fakeClock();
    const called: string[] = [];
    let address = "8.8.8.8";
    const dialer: Dialer = {
      resolve: async () => [{ address, family: 4 }],
      async fetch(_url, [first]) {
        called.push(first?.address ?? "");
        return new Response(set, { headers: { "content-type": "application/json" } });
      },
    };
    const jku = "https://keys.example/keys.json";
    const signed = await signCard(fullCard, key, { jku });
    const trust = { jku: ["https://keys.example"], dialer };
    expect((await verifyCard(signed, trust, { clock })).trusted).toBe(true);
    address = "169.254.169.254";
    const verdict = await verifyCard(signed, trust, { clock });
    expect(verdict).toMatchObject({ trusted: false, signatures: [{ outcome: "unreadable-keys" }] });
    expect(called).toEqual(["8.8.8.8"]);
  });
});

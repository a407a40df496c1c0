import { codeOf, known, mountOf, onlyAda, talker, type HostCases } from "./given.ts";

const hello = (name: string): string => `${name}: hello (anonymous)`;

/** Rules for adding, replacing and removing agents while a host serves. */
export const mountCases: HostCases = {
  "an added agent is served from the next request": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A", { path: "/a" }))]);
    expect([await host.card("/b"), await host.reply("/b")]).toEqual([404, 404]);
    const [added] = host.mounts.add(mountOf(talker("B", { path: "/b" })));
    expect([added?.id, added?.url, await host.card("/b"), await host.reply("/b")]).toEqual([
      "/b",
      `${host.url}/b`,
      "B",
      hello("B"),
    ]);
    expect(host.mounts.agents.map(({ id }) => id)).toEqual(["/a", "/b"]);
    expect(await host.reply("/a")).toEqual(hello("A"));
  },

  "several agents are added atomically": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A", { path: "/a" }))]);
    const mounts = [talker("B", { path: "/b" }), talker("C", { path: "/a" })].map(mountOf);
    expect(codeOf(() => host.mounts.add(mounts))).toEqual("InvalidParams");
    expect([await host.card("/b"), host.mounts.agents.length]).toEqual([404, 1]);
    host.mounts.add([talker("B", { path: "/b" }), talker("C", { path: "/c" })].map(mountOf));
    expect([await host.reply("/b"), await host.reply("/c")]).toEqual([hello("B"), hello("C")]);
  },

  "an address or id that is in use is rejected, and its agent is still served": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A", { path: "/a" }))]);
    const refused = [
      talker("B", { path: "/a" }),
      talker("B", { path: "/a/", id: "own" }),
      talker("B", { path: "/b", id: "/a" }),
      talker("B", { path: "/a/tasks" }),
      talker("B", { path: "/a/.well-known" }),
      talker("B", { path: "/.." }),
      talker("B", { path: "/b/%2E%2e/a" }),
      talker("B", { path: "/b//c" }),
      talker("B", { path: "b" }),
    ];
    for (const each of refused) expect(codeOf(() => host.mounts.add(mountOf(each)))).toEqual("InvalidParams");
    expect([await host.reply("/a"), host.mounts.agents.length]).toEqual([hello("A"), 1]);
  },

  "paths are case-sensitive": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A", { path: "/a" }))]);
    expect(await host.card("/A")).toEqual(404);
    host.mounts.add(mountOf(talker("Upper", { path: "/A" })));
    expect([await host.card("/a"), await host.card("/A")]).toEqual(["A", "Upper"]);
  },

  "the path of a removed agent is unknown, and its open calls and streams continue": async ({ serve, expect }) => {
    const a = talker("A", { path: "/a" });
    const host = await serve([mountOf(a)]);
    const waiting = host.reply("/a", "wait");
    const stream = await host.stream("/a");
    let isOver = false;
    const removed = host.mounts.remove("/a").then(() => (isOver = true));
    for (const path of ["/.well-known/agent-card.json", "/tasks/1", ""]) {
      expect(await host.get(`/a${path}`)).toEqual(await host.get(`/unknown${path}`));
    }
    expect(await host.reply("/a")).toEqual(404);
    expect([isOver, host.mounts.agents]).toEqual([false, []]);
    a.open();
    expect(await waiting).toEqual("A: wait (anonymous)");
    expect((await stream.end()).includes("last of A")).toEqual(true);
    await removed;
  },

  "removing an unknown id does nothing, even twice at once": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A", { path: "/a" }))]);
    await Promise.all([host.mounts.remove("/a"), host.mounts.remove("/a"), host.mounts.remove("/none")]);
    expect(host.mounts.agents).toEqual([]);
  },

  "the path of a removed agent can be reused while its streams continue": async ({ serve, expect }) => {
    const first = talker("First", { path: "/a" });
    const host = await serve([mountOf(first)]);
    const stream = await host.stream("/a");
    const removed = host.mounts.remove("/a");
    host.mounts.add(mountOf(talker("Second", { path: "/a" })));
    expect(await host.reply("/a")).toEqual(hello("Second"));
    first.open();
    expect((await stream.end()).includes("last of First")).toEqual(true);
    await removed;
    expect(await host.reply("/a")).toEqual(hello("Second"));
  },

  "an agent is replaced atomically: every request finds one of the two, and open streams continue": async ({
    serve,
    expect,
  }) => {
    const first = talker("First", { path: "/a" });
    const host = await serve([mountOf(first)]);
    const { headers } = await host.fetch("/a/.well-known/agent-card.json");
    const stream = await host.stream("/a");
    let isDone = false;
    const names = new Set<unknown>();
    const asking = (async () => {
      while (!isDone) names.add(await host.card("/a"));
    })();
    for (let at = 0; at < 20; at += 1) {
      host.mounts.replace(mountOf(talker(`Next ${at}`, { path: "/a" })));
      await host.reply("/a");
    }
    isDone = true;
    await asking;
    expect([...names].filter((name) => typeof name !== "string")).toEqual([]);
    const later = await host.fetch("/a/.well-known/agent-card.json", {
      headers: { "if-none-match": headers.get("etag") ?? "" },
    });
    expect([later.status, await host.reply("/a")]).toEqual([200, hello("Next 19")]);
    first.open();
    expect((await stream.end()).includes("last of First")).toEqual(true);
  },

  "a replacement may have another path but needs the id of a served agent": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A", { path: "/a", id: "one" }))]);
    host.mounts.replace(mountOf(talker("Moved", { path: "/b", id: "one" })));
    expect([await host.card("/a"), await host.card("/b")]).toEqual([404, "Moved"]);
    const unknown = mountOf(talker("Other", { path: "/b", id: "two" }));
    expect(codeOf(() => host.mounts.replace(unknown))).toEqual("InvalidParams");
  },

  "a tenant of a path can be added and removed without affecting the others": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("Acme", { path: "/a", tenant: "acme" }))]);
    const stream = await host.stream("/a/acme");
    host.mounts.add(mountOf(talker("Globex", { path: "/a", tenant: "globex" })));
    expect([await host.reply("/a/acme"), await host.reply("/a/globex")]).toEqual([hello("Acme"), hello("Globex")]);
    await host.mounts.remove("/a/globex");
    expect(await host.reply("/a/acme")).toEqual(hello("Acme"));
    expect(await host.reply("/a/globex")).toEqual(await host.reply("/a/nobody"));
    expect(await host.card("/a/globex")).toEqual(404);
    await stream.leave();
  },

  "callers are checked against the served card": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A", { path: "/a" }))], { authenticator: onlyAda() });
    host.mounts.add(mountOf(talker("B", { path: "/b" })));
    expect([await host.reply("/b"), await host.reply("/b", "hello", known)]).toEqual([401, "B: hello (ada)"]);
    const open = mountOf(talker("C", { path: "/c" }));
    const demanding = { ...open, card: { ...open.card, securityRequirements: [{ schemes: { other: { list: [] } } }] } };
    expect(codeOf(() => host.mounts.add(demanding))).toEqual("InvalidParams");
  },

  "the page for browsers lists the current agents": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("Alpha", { path: "/a" }))]);
    const page = async (): Promise<string> => (await host.get("/", { accept: "text/html" }))[1];
    expect((await page()).includes("Alpha")).toEqual(true);
    host.mounts.add(mountOf(talker("Beta", { path: "/b" })));
    const both = await page();
    expect([both.includes("Alpha"), both.includes("Beta")]).toEqual([true, true]);
    await host.mounts.remove("/b");
    expect((await page()).includes("Beta")).toEqual(false);
  },

  "a thousand agents are served, and each can be removed": async ({ serve, expect }) => {
    const host = await serve([]);
    host.mounts.add(Array.from({ length: 900 }, (_, at) => mountOf(talker(`Agent ${at}`, { path: `/all/${at}` }))));
    for (let at = 900; at < 1000; at += 1) host.mounts.add(mountOf(talker(`Agent ${at}`, { path: `/all/${at}` })));
    expect(await Promise.all([0, 899, 999].map((at) => host.reply(`/all/${at}`)))).toEqual(
      [0, 899, 999].map((at) => hello(`Agent ${at}`)),
    );
    await host.mounts.remove("/all/899");
    expect([await host.card("/all/899"), await host.card("/all/898")]).toEqual([404, "Agent 898"]);
  },

  "a closing host rejects new agents but still removes agents": async ({ serve, expect }) => {
    const a = talker("A", { path: "/a" });
    const host = await serve([mountOf(a)]);
    const stream = await host.stream("/a");
    const closing = host.close({ grace: 5_000 });
    await stream.until("first");
    const removed = host.mounts.remove("/a");
    a.open();
    await Promise.all([stream.end(), removed, closing]);
    expect(codeOf(() => host.mounts.add(mountOf(talker("B", { path: "/b" }))))).toEqual("Unavailable");
  },
};

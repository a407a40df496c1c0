import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { connect, type FetchLike } from "../../src/client/index.ts";
import { cardOf, errorOf, jsonRpcAt } from "./support.ts";

const seed = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 32));

/** Connects a client by URL. Records the requests of the client's own `fetch`, and the requests of the `fetch` for other origins. */
async function reading(at: string, credentialOrigins: readonly string[] = []) {
  const own: { readonly url: string; readonly headers: unknown; readonly redirect: unknown }[] = [];
  const others: string[] = [];
  const card = cardOf([jsonRpcAt("https://elsewhere.example/a2a")]);
  const fetch: FetchLike = (url, { headers, redirect }) => {
    if (url.endsWith("agent-card.json")) return Promise.resolve(Response.json(card));
    own.push({ url, headers, redirect });
    return Promise.resolve(new Response("own"));
  };
  const headers = { authorization: "Bearer secret-of-ada-0123456789" };
  const client = await connect(at, { fetch, headers, credentialOrigins });
  const file = client.fileFetch((url) => {
    others.push(url);
    return Promise.resolve(new Response("other"));
  });
  return { client, own, others, read: async (url: string) => (await file?.(url, {}))?.text() };
}

describe(`links of an agent (FUZZ_SEED=${seed})`, () => {
  test("are read by the client only if their origin is the one that the user named, in any spelling", async () => {
    const part = fc.constantFrom(
      "agent.example",
      "AGENT.example",
      "agent.example.",
      "evil.example",
      "agent.example.evil.example",
      "127.0.0.1",
    );
    const url = fc
      .record({
        scheme: fc.constantFrom("https:", "http:", "HTTPS:", "file:", "data:"),
        slashes: fc.constantFrom("//", "/\\", "///"),
        user: fc.constantFrom("", "agent.example@", "https://agent.example@", "agent.example%2f@"),
        host: part,
        port: fc.constantFrom("", ":443", ":80", ":8443"),
        path: fc.constantFrom(
          "/",
          "/../agent.example",
          "\\@agent.example/",
          "?https://agent.example/",
          "#@agent.example",
        ),
      })
      .map(({ scheme, slashes, user, host, port, path }) => scheme + slashes + user + host + port + path);
    const { own, others, read } = await reading("https://agent.example/weather");
    await fc.assert(
      fc.asyncProperty(url, async (link) => {
        own.length = others.length = 0;
        await read(link);
        const isOwn = URL.canParse(link) && new URL(link).origin === "https://agent.example";
        expect([own.length, others.length]).toEqual(isOwn ? [1, 0] : [0, 1]);
        if (isOwn) expect(own[0]).toMatchObject({ headers: {}, redirect: "manual" });
      }),
      { seed },
    );
  });

  test("are not followed to an origin that only the card names", async () => {
    const { others, own, read } = await reading("https://agent.example");
    expect(await read("https://elsewhere.example/file")).toBe("other");
    expect([own.length, others.length]).toEqual([0, 1]);
    const named = await reading("https://agent.example", ["https://elsewhere.example"]);
    expect(await named.read("https://elsewhere.example/file")).toBe("own");
  });

  test("treat all names of this machine as one origin, but not another port", async () => {
    const { own, others, read } = await reading("http://127.0.0.1:4000");
    for (const host of ["localhost", "[::1]", "127.0.0.1"]) expect(await read(`http://${host}:4000/f`)).toBe("own");
    expect(await read("http://localhost:4001/f")).toBe("other");
    expect([own.length, others.length]).toEqual([3, 1]);
  });

  test("are not followed when they redirect", async () => {
    const card = cardOf([jsonRpcAt("https://agent.example/a2a")]);
    const fetch: FetchLike = (url) =>
      Promise.resolve(url.endsWith(".json") ? Response.json(card) : Response.redirect("http://169.254.169.254/", 302));
    const client = await connect("https://agent.example", { fetch });
    const artifact = { artifactId: "a", parts: [{ url: "https://agent.example/file" }] };
    const read = async (): Promise<void> => {
      for await (const file of client.download(artifact)) await file.bytes();
    };
    expect(await errorOf(read())).toMatchObject({ code: "InvalidResponse" });
  });
});

import type { RouteMount } from "@parley/server/internal/server/options";
import { codeOf, known, mountOf, onlyAda, talker, type HostCases } from "./given.ts";

/** Answers with a description of the request. */
const mirror: RouteMount["answer"] = async (request, { principal }) => {
  const { pathname, search } = new URL(request.url);
  if (pathname.endsWith("/none")) return undefined;
  if (pathname.endsWith("/fail")) throw new Error("MARK-of-a-secret");
  const body = request.method === "GET" ? "" : await request.text();
  return Response.json([request.method, pathname + search, body, principal.subject]);
};

const open: RouteMount = { path: "/console", access: "anyone", answer: mirror };

/** Rules of an application's routes and pages. */
export const routeCases: HostCases = {
  "a route gets its path and all paths below it, with any method": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A"))], { routes: [open] });
    expect(await host.get("/console")).toEqual([200, '["GET","/console","","anonymous"]']);
    const answer = await host.fetch("/console/a/b?c=1", { method: "PUT", body: "text" });
    expect(await answer.json()).toEqual(["PUT", "/console/a/b?c=1", "text", "anonymous"]);
    expect((await host.fetch("/console", { method: "HEAD" })).status).toEqual(200);
  },

  "a route gets no other path, and the agents keep theirs": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A"))], { routes: [open] });
    for (const path of ["/consoles", "/Console", "//console", "/x/console"]) {
      expect((await host.get(path))[0]).toEqual(404);
    }
    expect([await host.card(""), await host.reply("")]).toEqual(["A", "A: hello (anonymous)"]);
    expect((await host.get("/console/none"))[0]).toEqual(404);
  },

  "a route at an address of an agent or the host is rejected": async ({ serve, expect }) => {
    const paths = [
      "",
      "/",
      "/tasks",
      "/tasks/x",
      "/message:send",
      "/v1",
      "/.well-known",
      "/.well-known/own",
      "/healthz",
      "/readyz",
      "/a",
      "/a/tasks",
      "/..",
      "/%2e%2e",
      "/x//y",
      "x",
      "/console/",
    ];
    for (const path of paths) {
      const mounts = [talker("A"), talker("B", { path: "/a" })].map(mountOf);
      const serving = serve(mounts, { health: true, routes: [{ ...open, path }] });
      const code = await serving.then(
        () => undefined,
        (error: { code?: unknown }) => error.code,
      );
      expect([path, code]).toEqual([path, "InvalidParams"]);
    }
  },

  "an added agent cannot take an address of a route": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A", { path: "/a" }))], { routes: [open] });
    for (const path of ["/console", "/console/agent"]) {
      expect(codeOf(() => host.mounts.add(mountOf(talker("B", { path }))))).toEqual("InvalidParams");
    }
    await host.mounts.remove("/a");
    expect((await host.get("/console"))[0]).toEqual(200);
  },

  "the host's authenticator decides, unless the route is public": async ({ serve, expect }) => {
    const routes = [
      { path: "/own", answer: mirror },
      { path: "/own/open", access: "anyone", answer: mirror },
    ] as const;
    const host = await serve([mountOf(talker("A"))], { authenticator: onlyAda(), routes });
    expect((await host.get("/own"))[0]).toEqual(401);
    expect((await host.get("/own", { "x-key": "another" }))[0]).toEqual(401);
    expect(await host.get("/own", known)).toEqual([200, '["GET","/own","","ada"]']);
    expect(await host.get("/own/open")).toEqual([200, '["GET","/own/open","","anonymous"]']);
    expect((await host.get("/own/opened"))[0]).toEqual(401);
  },

  "requests from other origins and hosts are rejected": async ({ serve, expect }) => {
    const origin = "https://evil.example";
    const closed = await serve([mountOf(talker("A"))], { allowedHosts: [], routes: [open] });
    expect((await closed.get("/console", { origin }))[0]).toEqual(403);
    const host = await serve([mountOf(talker("A"))], { routes: [open], cors: { origins: ["https://app.example"] } });
    const post = async (headers: Readonly<Record<string, string>>) =>
      (await host.fetch("/console", { method: "POST", headers, body: "x" })).status;
    expect(await post({ origin })).toEqual(403);
    expect(await post({ "sec-fetch-site": "cross-site" })).toEqual(403);
    expect(await post({ origin: "https://app.example" })).toEqual(200);
    expect(await post({ origin: new URL(host.url).origin })).toEqual(200);
  },

  "answers get headers that protect them from other pages; the route's own headers take precedence": async ({
    serve,
    expect,
  }) => {
    const answer: RouteMount["answer"] = (request) =>
      new Response("<p>Hello", {
        headers: {
          "content-type": "text/html",
          ...(request.url.endsWith("own") && {
            "x-frame-options": "SAMEORIGIN",
            "content-security-policy": "default-src *",
          }),
        },
      });
    const host = await serve([mountOf(talker("A"))], { routes: [{ path: "/ui", access: "anyone", answer }] });
    const { headers } = await host.fetch("/ui");
    expect([headers.get("x-content-type-options"), headers.get("x-frame-options")]).toEqual(["nosniff", "DENY"]);
    expect(headers.get("content-security-policy")?.includes("frame-ancestors 'none'")).toEqual(true);
    const own = await host.fetch("/ui/own");
    expect([own.headers.get("x-frame-options"), own.headers.get("content-security-policy")]).toEqual([
      "SAMEORIGIN",
      "default-src *",
    ]);
  },

  "pages of the host run no scripts": async ({ serve, expect }) => {
    const answer: RouteMount["answer"] = (_request, { page }) => page("A & <b>", "<p>Hello</p>");
    const host = await serve([mountOf(talker("A"))], { routes: [{ path: "/ui", access: "anyone", answer }] });
    const shown = await host.fetch("/ui");
    const text = await shown.text();
    expect([text.includes("<p>Hello</p>"), text.includes("<b>")]).toEqual([true, false]);
    expect(shown.headers.get("content-security-policy")?.startsWith("default-src 'none'")).toEqual(true);
  },

  "the size limit of bodies applies, and errors reveal nothing": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A"))], { routes: [open], limits: { bodyBytes: 1000 } });
    expect((await host.fetch("/console", { method: "POST", body: "x".repeat(2000) })).status).toEqual(413);
    const [status, text] = await host.get("/console/fail");
    expect([status, text.includes("MARK")]).toEqual([500, false]);
  },

  "close() aborts routes and ends their streams": async ({ serve, expect }) => {
    const answer: RouteMount["answer"] = (_request, { closing }) => {
      const encoder = new TextEncoder();
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(encoder.encode("first"));
          closing.addEventListener("abort", () => {
            controller.enqueue(encoder.encode("last"));
            controller.close();
          });
        },
      });
      return new Response(body);
    };
    const host = await serve([mountOf(talker("A"))], { routes: [{ path: "/events", access: "anyone", answer }] });
    const { body } = await host.fetch("/events");
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = (await reader?.read())?.value ?? "";
    const closed = host.close({ grace: 1_000 });
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) text += next.value;
    await closed;
    expect(text).toEqual("firstlast");
  },
};

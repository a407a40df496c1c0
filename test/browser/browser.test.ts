import { existsSync } from "node:fs";
import { createServer, type Server as HttpServer } from "node:http";
import {
  connect as connectTo,
  createServer as createTcp,
  type AddressInfo,
  type Server as TcpServer,
  type Socket,
} from "node:net";
import { join } from "node:path";
import { build } from "esbuild";
import { chromium, type Browser, type Page } from "playwright-core";
import { generate } from "selfsigned";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { defineAgent, memoryStore, serve, type ServeOptions, type Server } from "@parley/node";
import { bearer } from "@parley/a2a/auth";
import type { Actions } from "./page.ts";

/** Returns the path of a browser: `CHROMIUM_PATH`, or a path that distributions use. */
function findBrowser(): string {
  const named = process.env["CHROMIUM_PATH"];
  const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const found = named ?? places.find((place) => existsSync(place));
  if (found === undefined) throw new Error("No Chromium here: install one, or name its program in CHROMIUM_PATH");
  return found;
}

let browser: Browser;
let pages: HttpServer;
let pageOrigin: string;
let page: Page;
const servers: Server[] = [];
const links: Link[] = [];

beforeAll(async () => {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "page.ts")],
    bundle: true,
    format: "esm",
    platform: "browser",
    conditions: ["@parley/source"],
    write: false,
  });
  const script = outputFiles[0]?.text ?? "";
  pages = createServer((request, response) => {
    if (request.url === "/page.js") response.setHeader("content-type", "text/javascript").end(script);
    else response.setHeader("content-type", "text/html").end('<script type="module" src="/page.js"></script>');
  });
  pageOrigin = await urlOf(pages);
  browser = await chromium.launch({
    executablePath: findBrowser(),
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}, 120_000);

beforeEach(async () => {
  // The test's certificate is self-signed.
  page = await browser.newPage({ ignoreHTTPSErrors: true });
  await page.goto(pageOrigin);
  await page.waitForFunction(() => "parley" in globalThis);
});

afterEach(async () => {
  await page.close();
  for (const link of links.splice(0)) link.close();
  await Promise.all(servers.splice(0).map((server) => server.close({ grace: 0 })));
});

afterAll(async () => {
  await browser.close();
  pages.close();
});

async function urlOf(server: HttpServer | TcpServer): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Runs an action in the page. */
async function act<Name extends keyof Actions>(
  name: Name,
  ...args: Parameters<Actions[Name]>
): Promise<Awaited<ReturnType<Actions[Name]>>> {
  return (await page.evaluate(
    async ([action, given]) => {
      const { parley } = globalThis as unknown as { parley: Record<string, (...values: unknown[]) => unknown> };
      return parley[action]?.(...given);
    },
    [name, args] as const,
  )) as Awaited<ReturnType<Actions[Name]>>;
}

/** A proxy to a server. The test can cut the proxy's connections. */
interface Link {
  readonly url: string;
  /** The number of connections so far. */
  readonly connections: number;
  lead(port: number): void;
  cut(): void;
  close(): void;
}

async function openLink(): Promise<Link> {
  const sockets = new Set<Socket>();
  let target = 0;
  let connections = 0;
  const tcp = createTcp((near) => {
    connections++;
    const far = connectTo(target, "127.0.0.1");
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket
        .on("error", () => {})
        .on("close", () => {
          sockets.delete(socket);
          other.destroy();
        });
      socket.pipe(other);
    }
  });
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const link: Link = {
    url: await urlOf(tcp),
    get connections() {
      return connections;
    },
    lead: (port) => (target = port),
    cut,
    close() {
      cut();
      tcp.close();
    },
  };
  links.push(link);
  return link;
}

/** Starts an agent that answers in five chunks, and waits in the middle. */
async function start(options: ServeOptions = {}, inTheMiddle: Promise<void> = Promise.resolve()): Promise<Server> {
  const agent = defineAgent({
    name: "Chunks",
    description: "Answers in pieces.",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      yield turn.working();
      for (let chunk = 1; chunk <= 5; chunk++) {
        if (chunk === 3) {
          await turn.flush();
          await inTheMiddle;
        }
        yield turn.artifact({ artifactId: `part-${chunk}`, parts: [{ text: `${turn.text} ${chunk}` }] });
      }
    },
  });
  const server = await serve(agent, {
    port: 0,
    grpc: true,
    signals: false,
    store: memoryStore(),
    cors: true,
    ...options,
  });
  servers.push(server);
  return server;
}

const chunks = [1, 2, 3, 4, 5].map((number) => `hello ${number}`);

describe.each(["JSONRPC", "HTTP+JSON", "GRPC"])("a page of another origin, over %s", (binding) => {
  it("sends a message", async () => {
    const { url } = await start();
    expect(await act("send", url, binding, "hello")).toEqual({ state: "TASK_STATE_COMPLETED", texts: chunks });
  });

  it("streams", async () => {
    const { url } = await start();
    expect(await act("stream", url, binding, "hello")).toEqual([
      "TASK_STATE_WORKING",
      ...chunks,
      "TASK_STATE_COMPLETED",
    ]);
  });

  it("resumes a dropped stream without loss or duplicates", async () => {
    const link = await openLink();
    let goOn = (): void => {};
    const { port } = await start({ publicUrl: link.url }, new Promise((resolve) => (goOn = resolve)));
    let cutAfter = 0;
    await page.exposeFunction("tellTest", (chunk: string) => {
      if (chunk !== "hello 2") return;
      cutAfter = link.connections;
      link.cut();
      goOn();
    });
    link.lead(port);
    const seen = await act("stream", link.url, binding, "hello");
    // gRPC events have no numbers from which a stream could resume, so the current task replaces the earlier events.
    if (binding === "GRPC")
      seen.splice(0, seen.length, "TASK_STATE_WORKING", ...seen.filter((s) => !s.endsWith("WORKING")));
    expect(seen).toEqual(["TASK_STATE_WORKING", ...chunks, "TASK_STATE_COMPLETED"]);
    expect(cutAfter).toBeGreaterThan(0);
    expect(link.connections).toBeGreaterThan(cutAfter);
  });

  it("sees the same typed errors as any client", async () => {
    const { url } = await start();
    expect(await act("fail", url, binding, "unknownTask")).toMatchObject({
      name: "A2AError",
      code: "TaskNotFound",
      fields: [],
    });
    expect(await act("fail", url, binding, "emptyMessage")).toMatchObject({
      name: "A2AError",
      code: "InvalidParams",
      fields: ["message.parts"],
    });
  });
});

describe("a server with a certificate", () => {
  it("is reachable over HTTP/2 by every binding, and streams", async () => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "127.0.0.1" }]);
    const { url } = await start({ tls: { cert, key } });
    const protocols = new Set<string>();
    const devtools = await page.context().newCDPSession(page);
    devtools.on("Network.responseReceived", ({ response }) => {
      if (response.url.startsWith(url)) protocols.add(response.protocol ?? "");
    });
    await devtools.send("Network.enable");
    for (const binding of ["JSONRPC", "HTTP+JSON", "GRPC"]) {
      expect(await act("send", url, binding, "hello")).toEqual({ state: "TASK_STATE_COMPLETED", texts: chunks });
      expect(await act("stream", url, binding, "hello")).toContain("hello 5");
    }
    expect([...protocols]).toEqual(["h2"]);
  });
});

describe("a page of another origin", () => {
  const card = "/.well-known/agent-card.json";

  it("can send the headers of the protocol, and read the answer (CORS)", async () => {
    const { url } = await start({ cors: { origins: [pageOrigin] } });
    const first = await act("headers", url + card, { headers: { "a2a-version": "1.0", "a2a-extensions": "urn:x" } });
    const etag = first.headers["etag"] ?? "";
    expect(etag).not.toBe("");
    const again = await act("headers", url + card, {
      headers: { "a2a-version": "1.0", "if-none-match": etag },
      cache: "no-store",
    });
    expect(again.status).toBe(304);
  });

  it("can send credentials, and read why they were rejected", async () => {
    const { url } = await start({ authenticator: bearer({ secret: { subject: "ann" } }) });
    const init = { method: "POST", body: "{}" };
    const json = { "content-type": "application/json" };
    const refused = await act("headers", url, { ...init, headers: json });
    expect([refused.status, refused.headers["www-authenticate"]]).toEqual([401, expect.stringContaining("Bearer")]);
    const taken = await act("headers", url, { ...init, headers: { ...json, authorization: "Bearer secret" } });
    expect(taken.status).toBe(200);
  });

  it.each([
    ["without CORS", {}],
    ["that allows another origin", { origins: ["https://elsewhere.example"] }],
  ])("cannot reach a server %s, and the error names the option that allows it", async (_name, cors) => {
    const { url } = await start({ cors: "origins" in cors ? { origins: cors.origins } : false });
    const { code, message } = await act("fail", url, "JSONRPC", "noAgent");
    expect(code).toBe("ConnectionFailed");
    expect(message).toContain(`CORS may refuse this page: set its option cors: { origins: ["${pageOrigin}"] }`);
  });
});

import { once } from "node:events";
import { createServer, request, type IncomingMessage, type Server as HttpServer, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { defineAgent, text, type AgentCard } from "@parley/server";
import { apiKey, bearer } from "@parley/a2a/auth";
import { serve } from "@parley/node";
import { afterEach, describe, expect, test } from "vitest";
import { certificate } from "../../../test/identity/certificates.ts";
import type { Finding } from "../src/output/show.ts";
import { checkClients, misplaced } from "../src/doctor/addresses.ts";
import { checkClock } from "../src/doctor/server.ts";
import { verdictOf } from "../src/doctor/index.ts";
import { parleyHere } from "./support/in-process.ts";
import { startServer } from "./support/server.ts";

/** `parley doctor`: its findings, and the fix that it names. Faulty servers are third-party ones. */

const opened: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

function keep<T extends { close(): unknown }>(each: T): T {
  opened.push(each);
  return each;
}

/** An agent whose task takes the requested time, with ten progress reports. */
const slow = defineAgent({
  name: "Slow",
  description: "Takes its time.",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    for (let step = 0; step < 10; step += 1) {
      yield turn.working(`Step ${step}`);
      await new Promise((resolve) => setTimeout(resolve, Number(turn.text) / 10));
    }
    yield turn.artifact({ parts: [text("Done.")] });
  },
});

async function doctor(
  url: string,
  ...more: string[]
): Promise<{ readonly code: number | undefined; readonly found: Finding[] }> {
  const { code, out, err } = await parleyHere(["doctor", url, "--json", ...more]);
  expect(err).toBe("");
  return {
    code,
    found: out
      .trim()
      .split("\n")
      .map((each) => JSON.parse(each) as Finding),
  };
}

const of = (found: readonly Finding[], subject: Finding["subject"]): readonly Finding[] =>
  found.filter((each) => each.subject === subject);

async function listen(server: HttpServer): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  keep({ close: () => (server.closeAllConnections(), server.close()) });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Change = (answer: IncomingMessage, body: string) => { headers?: Record<string, string>; body?: string };

/** A third-party proxy: it passes an answer on when it is complete, and may change it. */
async function proxy(upstream: () => string, change: Change = () => ({})): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const asked = request(
      `${upstream()}${url}`,
      { method, headers: { ...headers, host: new URL(upstream()).host } },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("end", () => {
          const whole = Buffer.concat(chunks).toString();
          const { headers: others, body = whole } = change(answer, whole);
          const { "content-length": _, "transfer-encoding": __, ...rest } = answer.headers;
          outgoing.writeHead(answer.statusCode ?? 502, { ...rest, ...others });
          outgoing.end(body);
        });
      },
    );
    incoming.pipe(asked);
  });
  return listen(server);
}

describe("parley doctor", () => {
  test("finds nothing wrong with a healthy server, and calls each address of the card", async () => {
    const { url } = keep(await startServer(slow, { grpc: false }));
    const { code, found } = await doctor(url, "--message", "800");
    expect(found.map(({ subject, verdict }) => [subject, verdict])).toEqual([
      ["card", "ok"],
      ["clock", "ok"],
      ["versions", "ok"],
      ["clients", "ok"],
      ...Array.from({ length: 4 }, () => ["address", "ok"]),
      ["streams", "ok"],
    ]);
    expect(code).toBe(0);
  });

  test("sends no message unless requested, and starts no task", async () => {
    let asked = 0;
    const { url } = keep(await startServer({ ...slow, execute: (turn) => ((asked += 1), slow.execute(turn)) }));
    const { found } = await doctor(url);
    expect(of(found, "streams")).toMatchObject([{ verdict: "unknown", cure: expect.stringContaining("--message") }]);
    expect(asked).toBe(0);
  });

  test("prints on a terminal a mark, the subject, the observation, and the fix below", async () => {
    const { url } = keep(await startServer(slow, { grpc: false }));
    const { out } = await parleyHere(["doctor", url]);
    expect(out).toMatch(/^✓ card {6}http:\/\/127\.0\.0\.1:\d+\/\.well-known\/agent-card\.json, 1\.\d kB, in \d+ ms$/m);
    expect(out).toMatch(/^– streams {3}not checked: this needs a task\n {12}→ Pass --message TEXT/m);
    expect(out).toMatch(/\n\nThe agent can be called\.\n$/);
  });

  test("finds a proxy that buffers streams", async () => {
    const at: { url: string } = { url: "" };
    const outside = await proxy(() => at.url);
    at.url = keep(await startServer(slow, { publicUrl: outside })).url;
    const { code, found } = await doctor(outside, "--message", "1500", "--binding", "JSONRPC");
    expect(of(found, "streams")).toMatchObject([
      { verdict: "broken", cure: expect.stringContaining("proxy_buffering off") },
    ]);
    expect(code).toBe(1);
  });

  test("finds a clock that is an hour off", async () => {
    const at: { url: string } = { url: "" };
    const headers = { date: new Date(Date.now() - 3_600_000).toUTCString() };
    const outside = await proxy(
      () => at.url,
      () => ({ headers }),
    );
    at.url = keep(await startServer(slow, { publicUrl: outside })).url;
    const { code, found } = await doctor(outside);
    expect(of(found, "clock")).toMatchObject([{ verdict: "broken", seen: expect.stringContaining("60 min behind") }]);
    expect(code).toBe(1);
  });

  test("finds an address that does not answer, and an address of another server", async () => {
    const page = await listen(createServer((_, response) => void response.writeHead(200).end("<html>Welcome</html>")));
    const gone = createServer();
    const nowhere = await listen(gone);
    gone.close();
    const at: { url: string } = { url: "" };
    const supportedInterfaces = [page, nowhere].map((url) => ({
      url,
      protocolBinding: "JSONRPC",
      protocolVersion: "1.0",
    }));
    const outside = await proxy(
      () => at.url,
      (_, body) => ({ body: JSON.stringify({ ...(JSON.parse(body) as object), supportedInterfaces }) }),
    );
    at.url = keep(await startServer(slow)).url;
    const { code, found } = await doctor(outside);
    expect(of(found, "address")).toMatchObject([
      { verdict: "broken", cure: expect.stringContaining("Another server answers there") },
      { verdict: "broken", cure: expect.stringContaining("Make this address reachable") },
    ]);
    expect(code).toBe(1);
  });

  test("names publicUrl if the card names another address than its own, and grpc_pass if a proxy does not pass on gRPC", async () => {
    const at: { url: string } = { url: "" };
    const outside = await proxy(() => at.url);
    at.url = keep(await startServer(slow, { publicUrl: outside })).url;
    const throughProxy = of((await doctor(outside, "--binding", "GRPC")).found, "address");
    expect(throughProxy[0]).toMatchObject({ verdict: "broken", cure: expect.stringContaining("grpc_pass") });

    const gone = createServer();
    const publicUrl = await listen(gone);
    gone.close();
    const { url } = keep(await startServer(slow, { publicUrl }));
    for (const each of of((await doctor(url)).found, "address"))
      expect(each).toMatchObject({ verdict: "broken", cure: expect.stringContaining(`(--public-url) to ${url}`) });
  });

  test("names the client that rejects a card with gRPC, and why: a warning, and the agent can be called", async () => {
    const { url } = keep(await startServer(slow, { grpc: true }));
    const { code, found } = await doctor(url);
    expect(of(found, "clients")).toEqual([
      {
        subject: "clients",
        verdict: "warning",
        seen: `ADK for Python (from 2.13) rejects this card: GRPC at ${new URL(url).host} is neither https, nor http on a loopback host`,
        cure: expect.stringContaining("(the option grpc of serve(), --grpc)"),
      },
    ]);
    expect(code).toBe(0);
  });

  test("calls gRPC with TLS if the card's other addresses use it, even on this machine", async () => {
    const first: number[] = [];
    const server = createTcpServer((socket) => {
      socket.once("data", (bytes) => (first.push(bytes[0] ?? 0), socket.destroy())).on("error", () => {});
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    keep(server);
    const host = `localhost:${(server.address() as AddressInfo).port}`;
    const supportedInterfaces = [
      { url: `https://${host}`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: host, protocolBinding: "GRPC", protocolVersion: "1.0" },
    ];
    const card = { name: "C", description: "", version: "1", skills: [], capabilities: {}, supportedInterfaces };
    const outside = await listen(createServer((_, response) => void response.end(JSON.stringify(card))));
    await doctor(outside, "--binding", "GRPC");
    expect(first).toEqual([22]); // a handshake of TLS (RFC 8446 §5.1)
  });

  test("has no warning about signatures for a card without any", async () => {
    const { url } = keep(
      await startServer(slow, { authenticator: apiKey({ "key-of-ada-0123456789": { subject: "ada" } }) }),
    );
    expect(of((await doctor(url)).found, "card").map(({ verdict }) => verdict)).toEqual(["ok"]);
  });

  test("reports that an agent requires credentials, and accepts that", async () => {
    const token = "secret-of-ada-0123456789";
    const { url } = keep(await startServer(slow, { authenticator: bearer({ [token]: { subject: "ada" } }) }));
    const without = await doctor(url);
    expect(of(without.found, "address").map(({ seen }) => seen.includes("requires credentials"))).toEqual(
      Array(6).fill(true),
    );
    expect(of(without.found, "streams")).toMatchObject([{ cure: expect.stringContaining("parley login") }]);
    expect(without.code).toBe(0);
    const given = await doctor(url, "--token", token, "--message", "800");
    expect(of(given.found, "streams")).toMatchObject([{ verdict: "ok" }]);
    expect(JSON.stringify(given.found)).not.toContain(token);
  });

  test("finds a missing server, and a certificate that clients reject", async () => {
    const gone = createServer();
    const nowhere = await listen(gone);
    gone.close();
    const missing = await doctor(nowhere);
    expect(missing).toMatchObject({ code: 1, found: [{ subject: "card", verdict: "broken" }] });
    expect(missing.found[0]?.cure).toContain("Start the server");

    const { cert, key } = await certificate({ commonName: "localhost", names: ["DNS:localhost", "IP:127.0.0.1"] });
    const tls = createTlsServer({ cert, key }, (_, response) => void response.end());
    const url = (await listen(tls)).replace("http:", "https:");
    const { code, found } = await doctor(url);
    expect(of(found, "tls")).toMatchObject([
      { verdict: "broken", cure: expect.stringContaining("NODE_EXTRA_CA_CERTS") },
    ]);
    expect(code).toBe(1);
  });

  test("sends credentials only to the given origin, and reads no more than a card may have", async () => {
    const told: unknown[] = [];
    const elsewhere = await listen(
      createServer(({ headers }, response) => {
        told.push(headers["x-api-key"], headers.authorization);
        response.end("{}");
      }),
    );
    let asked = 0;
    let second = (response: ServerResponse): void => void response.writeHead(302, { location: elsewhere }).end();
    const server = createServer((_, response) => {
      asked += 1;
      if (asked > 1) {
        second(response);
        return;
      }
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      response.setHeader("content-type", "application/json");
      const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
      const { name, description, version, skills } = slow;
      const modes = { defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"] };
      response.end(
        JSON.stringify({ name, description, version, skills, capabilities: {}, supportedInterfaces, ...modes }),
      );
    });
    const url = await listen(server);
    const moved = await doctor(
      url,
      "--header",
      "x-api-key: secret-of-ada-0123456789",
      "--token",
      "secret-of-ada-012345678",
    );
    expect(told).toEqual([]);
    expect(moved.found[0]).toMatchObject({ subject: "card", verdict: "warning", seen: expect.stringContaining("302") });

    asked = 0;
    const mebi = " ".repeat(1 << 20);
    second = (response) => void response.write(mebi, () => response.destroyed || second(response));
    const endless = await doctor(url);
    expect(endless.found[0]).toMatchObject({
      verdict: "warning",
      seen: expect.stringContaining("exceeds 1048576"),
    });
  });

  test("lists the agents of a server without an agent at its root, or says what to add to the URL", async () => {
    const mounts = ["/planner", "/booker"].map((path) => ({ agent: slow, path }));
    const { url } = keep(await serve(mounts, { port: 0, logger: false }));
    const cure = `Pass the URL of an agent: ${url}/planner or ${url}/booker`;
    for (const at of [url, `${url}/typo`]) {
      const seen = expect.stringContaining("HTTP 404");
      expect((await doctor(at)).found).toMatchObject([{ subject: "card", verdict: "broken", seen, cure }]);
    }
    expect(of((await doctor(`${url}/booker`)).found, "card")).toMatchObject([{ verdict: "ok" }]);
    const elsewhere = '<a href="https://other.example/.well-known/agent-card.json">Card</a>';
    const page = await listen(createServer((_, response) => void response.writeHead(404).end(elsewhere)));
    expect((await doctor(page)).found).toMatchObject([
      {
        verdict: "broken",
        cure: expect.stringContaining(`Add the path of the agent to the URL, such as ${page}/agent.`),
      },
    ]);
  });

  test("finds an invalid card, and a card of only an older version", async () => {
    const page = await listen(createServer((_, response) => void response.writeHead(200).end("<html>Welcome</html>")));
    expect((await doctor(page)).found).toMatchObject([
      { subject: "card", verdict: "broken", cure: expect.stringContaining("agent-card.json") },
    ]);
    const { url } = keep(await startServer(slow, { versions: ["0.3"] }));
    expect(of((await doctor(url)).found, "versions")).toMatchObject([
      { verdict: "warning", cure: expect.stringContaining("1.0") },
    ]);
  });
});

test("a clock is judged by the precision of the header: whole seconds, written while the request was in progress", () => {
  const verdict = (said: number): string => checkClock({ said, asked: 100_000, answered: 103_000 }).verdict;
  expect(verdict(99_000)).toBe("ok");
  expect(verdict(103_000)).toBe("ok");
  expect(verdict(94_500)).toBe("ok");
  expect(verdict(93_000)).toBe("warning");
  expect(verdict(109_000)).toBe("warning");
  expect(verdict(30_000)).toBe("broken");
  expect(verdict(170_000)).toBe("broken");
});

test("addresses are broken if only the server's own network can call them, or they are less secure than the card", () => {
  const verdict = (asked: string, url: string): string | undefined =>
    misplaced(new URL(asked), { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" })?.verdict;
  for (const inside of [
    "http://127.0.0.1:4000",
    "https://10.0.0.7/a2a",
    "https://agents.internal",
    "localhost:50051",
    "[::1]:443",
  ])
    expect([inside, verdict("https://agents.example.com", inside)]).toEqual([inside, "broken"]);
  expect(verdict("https://agents.example.com", "http://agents.example.com")).toBe("broken");
  expect(verdict("https://agents.example.com", "no address")).toBe("broken");
  expect(verdict("https://agents.example.com", "https://api.example.com/a2a")).toBeUndefined();
  expect(verdict("https://agents.example.com", "agents.example.com:443")).toBeUndefined();
  expect(verdict("http://10.0.0.7:4000", "http://10.0.0.7:4000")).toBeUndefined();
});

test("ADK for Python rejects addresses other than https or http on this machine, and origins other than that of the card", () => {
  const seen = (asked: string, ...urls: readonly string[]): string | undefined => {
    const supportedInterfaces = urls.map((url) => ({ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }));
    const [finding] = checkClients(new URL(asked), { ...slow, supportedInterfaces } as unknown as AgentCard);
    return finding?.verdict === "ok" ? undefined : finding?.seen.split(": ").slice(1).join(": ");
  };
  expect(seen("https://a.example", "https://a.example", "https://a.example:443/rest")).toBeUndefined();
  expect(seen("http://localhost:4000/agent", "http://localhost:4000/agent")).toBeUndefined();
  expect(seen("http://127.0.0.1:4000", "http://127.0.0.1:4000")).toBeUndefined();
  expect(seen("http://[::1]:4000", "http://[::1]:4000")).toBeUndefined();
  expect(seen("http://10.0.0.7:4000", "http://10.0.0.7:4000")).toContain("http://10.0.0.7:4000 is neither https");
  expect(seen("https://a.example", "https://a.example", "a.example:443")).toContain("a.example:443 is neither https");
  expect(seen("https://a.example", "http://a.example")).toContain("http://a.example is neither https");
  for (const other of ["https://b.example", "https://a.example:8443"])
    expect(seen("https://a.example", other)).toContain("is not at the origin of the card, https://a.example");
  expect(seen("http://127.0.0.1:4000", "http://localhost:4000")).toContain("is not at the origin of the card");
});

test("streams are judged by how long the task took: a quick one shows nothing", () => {
  const verdict = (made: number, came: number): string => verdictOf({ events: 9, made, came, whole: true }).verdict;
  expect(verdict(20, 0)).toBe("unknown");
  expect(verdict(2000, 10)).toBe("broken");
  expect(verdict(2000, 1900)).toBe("ok");
  expect(verdict(2000, 9000)).toBe("ok");
});

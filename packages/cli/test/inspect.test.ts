import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { run } from "../src/program.ts";
import scripted from "./fixtures/agent.ts";
import { parleyHere } from "./support/in-process.ts";
import { recordedIo } from "./support/io.ts";
import { startServer } from "./support/server.ts";

/* The credentials that `parley inspect` sends to each agent. */

interface Recorded {
  readonly url: string;
  /** All values of `authorization` and `x-key` that arrived. */
  readonly credentials: () => readonly string[];
}

/** A server that records the credentials it receives, and forwards to an agent. */
async function recording(): Promise<Recorded> {
  const agent = await startServer(scripted, { grpc: false });
  const seen: string[] = [];
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    for (const name of ["authorization", "x-key"]) seen.push(...[request.headers[name] ?? []].flat());
    const answer = await fetch(agent.url + (request.url ?? ""));
    const text = (await answer.text()).replaceAll(agent.url, at);
    response.writeHead(answer.status, { "content-type": "application/json" }).end(text);
  };
  const server = createServer((request, response) => void forward(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await agent.close({ grace: 0 });
  });
  return { url: at, credentials: () => [...new Set(seen)] };
}

/** Starts the console. Returns a function that calls its API as the page does. */
async function inspecting(args: readonly string[], env: Readonly<Record<string, string>>) {
  const home = { XDG_CONFIG_HOME: "/nowhere", PARLEY_KEYCHAIN: "off" };
  const { io, out, err, interrupt } = recordedIo({ env: { ...home, ...env } });
  const ended = run(["inspect", ...args, "--no-open", "--json"], io);
  onTestFinished(async () => {
    interrupt("SIGINT");
    await ended;
  });
  await expect.poll(() => out() + err()).toContain('"url"');
  const page = new URL((JSON.parse(out()) as { readonly url: string }).url);
  const token = new URLSearchParams(page.hash.slice(1)).get("token") ?? "";
  return async (method: string, path: string, body?: object): Promise<Response> =>
    fetch(new URL(`api/${path}`, page), {
      method,
      headers: { "x-parley-console": token, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
}

const tokens = { PARLEY_TOKEN: "of-the-agent", PARLEY_OPERATOR_TOKEN: "of-the-operator" };

test("each token goes only to its own agent", async () => {
  const [agent, stranger, operators] = [await recording(), await recording(), await recording()];
  const ask = await inspecting([agent.url, "--header", "X-Key: k", "--operators", `${operators.url}/ops`], tokens);
  const connected = await ask("POST", "agents", { url: stranger.url });
  expect(connected.status).toBe(200);
  const { id } = (await connected.json()) as { readonly id: string };
  const sent = await ask("POST", "wire", { agent: id, method: "POST", url: `${stranger.url}/`, body: "{}" });
  expect(sent.status).toBe(204);
  await ask("POST", "wire", { agent: "a1", method: "POST", url: `${agent.url}/`, body: "{}" });
  await ask("GET", "operators/v1/tasks");
  expect(stranger.credentials()).toEqual([]);
  expect(agent.credentials()).toEqual(["Bearer of-the-agent", "k"]);
  expect(operators.credentials()).toEqual(["Bearer of-the-operator"]);
});

test("the operators' API gets no token for agents, and agents get none for operators", async () => {
  const [agent, operators] = [await recording(), await recording()];
  const of = { PARLEY_TOKEN: tokens.PARLEY_TOKEN };
  const ask = await inspecting([agent.url, "--operators", `${operators.url}/ops`], of);
  await ask("GET", "operators/v1/tasks");
  await parleyHere(["ops", "list", "--url", `${operators.url}/ops`], { env: of });
  expect(operators.credentials()).toEqual([]);
  await parleyHere(["ops", "list", "--url", `${operators.url}/ops`], { env: tokens });
  expect(operators.credentials()).toEqual(["Bearer of-the-operator"]);
  await parleyHere(["card", agent.url], { env: { PARLEY_OPERATOR_TOKEN: tokens.PARLEY_OPERATOR_TOKEN } });
  expect(agent.credentials()).toEqual(["Bearer of-the-agent"]);
});

test("agents other than the named one can be signed in to; the named one has its token", async () => {
  const [agent, other] = [await recording(), await recording()];
  const ask = await inspecting([agent.url], tokens);
  const entry = await (await ask("POST", "agents", { url: other.url })).json();
  expect(entry).toHaveProperty("signIn");
  const { agents } = (await (await ask("GET", "session")).json()) as { readonly agents: readonly object[] };
  expect(agents[0]).not.toHaveProperty("signIn");
});

test("credentials without the URL of their agent are refused", async () => {
  const { code, err } = await parleyHere(["inspect", "--token", "s3cret", "--no-open"]);
  expect({ code, err }).toMatchObject({
    code: 2,
    err: expect.stringContaining("--token and --header need the URL of the agent that receives them"),
  });
});

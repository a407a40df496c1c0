import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore, serve } from "@parley/node";
import { connect } from "@parley/a2a";
import { describe, expect, it, onTestFinished } from "vitest";
import { reservePort } from "../../../test/crash/supervisor.ts";
import { compiled } from "../../../test/programs.ts";
import agent from "../agent.ts";
import { konamiCode } from "../konami-code.ts";
import { card, declaration, exchanges } from "./guide.ts";

/** The agent at the address of the guide. Its server generates these ids in order; the last one is the id of the reply. */
async function served(): Promise<string> {
  const ids = ["run", "conversation", "2"];
  let next = 0;
  const server = await serve([{ agent, path: "/agents/eightball" }], {
    port: 0,
    store: memoryStore(),
    logger: false,
    ids: { next: () => ids[next++] ?? `${next}` },
  });
  onTestFinished(() => server.close());
  return `${server.url}/agents/eightball`;
}

function post(url: string, header: string | undefined, body: object): Promise<Response> {
  const headers = { "Content-Type": "application/json", ...(header && { [header]: konamiCode.uri }) };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}

/** JSON with sorted members, so that equal values have equal texts. */
function inOrder(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : member,
  );
}

describe.each(exchanges)("on the wire of $version", ({ version, header, request, response, reply }) => {
  it("equals what the guide prints", async () => {
    const answer = await post(await served(), header, request);
    expect([answer.status, answer.headers.get("Content-Type"), answer.headers.get(header)]).toEqual([
      200,
      "application/json",
      konamiCode.uri,
    ]);
    // The guide omits the context id, which a server must return (A2A 1.0 §3.4.1).
    Object.assign(reply, { contextId: "conversation" });
    expect(inOrder(await answer.json())).toBe(inOrder(response));
  });

  it("has no unlocked fortune, and no header, if the extension is not requested", async () => {
    const answer = await post(await served(), undefined, request);
    expect([...answer.headers.keys()].filter((name) => name.includes("extensions"))).toEqual([]);
    expect(await answer.text()).not.toContain("bingo");
  });

  it("equals what our client sends", async () => {
    const sent: (readonly [Headers, string])[] = [];
    const client = await connect(await served(), {
      version,
      extensions: [konamiCode],
      fetch: (input, init) => {
        if (init?.method === "POST") sent.push([new Headers(init.headers), String(init.body)]);
        return fetch(input, init);
      },
    });
    const { message } = await client.sendMessage({
      message: { messageId: "1", parts: [{ text: "Oh magic 8-ball, will it rain today?" }] },
      metadata: { [`${konamiCode.uri}/code`]: "motherlode" },
    });
    expect(message?.parts[0]?.text).toBe("That's a bingo!");
    expect(sent).toHaveLength(1);
    const [[headers, body] = [new Headers(), ""]] = sent;
    expect(headers.get(header)).toBe(konamiCode.uri);
    // Each client numbers its requests separately.
    expect(inOrder({ ...(JSON.parse(body) as object), id: "1" })).toBe(inOrder(request));
  });
});

it("answers at the path of the guide, /agents/eightball, as the program that `npm start` runs", async () => {
  const port = await reservePort();
  const main = join(import.meta.dirname, "../main.ts");
  const folder = await mkdtemp(join(tmpdir(), "parley-eight-ball-"));
  const child = spawn(process.execPath, [compiled(main)], {
    cwd: folder,
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(async () => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    await rm(folder, { recursive: true });
  });
  await once(child.stdout, "data");
  const url = `http://127.0.0.1:${port}/agents/eightball`;
  for (const { header, request } of exchanges) {
    const answer = await post(url, header, request);
    expect([answer.status, answer.headers.get(header)]).toEqual([200, konamiCode.uri]);
    expect(await answer.text()).toContain("That's a bingo!");
  }
  const found = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as { readonly url: string };
  expect(found.url).toBe(url);
});

it("has the card of the guide", async () => {
  const client = await connect(await served());
  expect(client.card).toMatchObject(card);
  expect(client.card.capabilities.streaming).toBe(true);
  expect(client.card.capabilities.extensions).toContainEqual(declaration);
});

it("has a fortune for each code, and none for an invalid code", async () => {
  const url = await served();
  const client = await connect(url, { extensions: [konamiCode] });
  const ask = async (code: string | number) => {
    const { message } = await client.sendMessage({
      message: { parts: [{ text: "Will it rain?" }] },
      metadata: { [`${konamiCode.uri}/code`]: code },
    });
    return message?.parts[0]?.text;
  };
  const usual = (await (await connect(url)).sendMessage("Will it rain?")).message?.parts[0]?.text;
  expect(await ask("there is no cow level")).toBe("Moo.");
  expect(await ask("rosebud")).toBe(usual);
  // A data extension never rejects a message: it ignores an invalid code.
  expect(await ask(42)).toBe(usual);
  expect(await ask("motherlode".repeat(1000))).toBe(usual);
});

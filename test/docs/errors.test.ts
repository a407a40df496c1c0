import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createHandler, defineAgent, memoryStore, type HandlerOptions } from "@parley/server";
import { wireErrorCodes, wireErrors, type A2AErrorCode } from "@parley/a2a/model";
import { wireStatuses, type ClientErrorCode } from "@parley/a2a/internal/model/index";
import { serve, type ServeOptions } from "@parley/node";
import { format } from "oxfmt";
import { developmentKey } from "../../packages/node/src/development-key.ts";
import { withErrors } from "../../site/errors.mjs";
import { root } from "./pages.ts";

/** Checks that `docs/errors.md` has every code with its form on each binding, and the messages of servers that do not start. */

const page = readFileSync(join(root, "docs/errors.md"), "utf8");

/** The compiler checks that this list is complete: a new client code is an error until the list contains it. */
const clientCodes = Object.keys({
  ConnectionFailed: true,
  ConnectionLost: true,
  Timeout: true,
  Aborted: true,
  InvalidResponse: true,
} satisfies Record<ClientErrorCode, true>);

describe("docs/errors.md", () => {
  test("is generated from the code: npm run docs -- --index writes it", async () => {
    expect((await format("page.md", withErrors(page), { printWidth: 120 })).code).toBe(page);
  });

  test("has the numbers of every code of a server, as in the code", () => {
    const rows = [...page.matchAll(/^\| \[`(\w+)`\]\S* +\| (\S+) +\| (\d+) +\| (\w+) +\| (.*?) +\|$/gm)];
    const wanted = wireErrorCodes.map((code) => {
      const { jsonrpc, http, message } = wireErrors[code];
      return [code, String(jsonrpc), String(http), wireStatuses[code], message];
    });
    expect(rows.map(([, ...cells]) => cells)).toEqual(wanted);
  });

  test("explains each code, and no other, and what helps", () => {
    const sections = [...page.matchAll(/^### `(\w+)`\n\n([\s\S]*?)(?=^##)/gm)];
    expect(sections.map(([, code]) => code)).toEqual([...wireErrorCodes, ...clientCodes]);
    for (const [, code, text = ""] of sections) expect(text, code).toMatch(/^[\s\S]+?\n\n\*\*Cure:\*\* \S/);
  });

  test("names the codes that are answered with an HTTP status over JSON-RPC too", () => {
    const outside = wireErrorCodes.filter((code) => wireErrors[code].outside === true);
    const [first] = outside;
    expect(wireErrorCodes.slice(wireErrorCodes.indexOf(first as (typeof wireErrorCodes)[number]))).toEqual(outside);
    expect(page).toContain(`for the codes from \`${first satisfies A2AErrorCode | undefined}\` on`);
  });
});

const agent = defineAgent({
  name: "Agent",
  description: "Does nothing.",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield turn.working();
  },
});

/** Casts options that only JavaScript callers can pass. */
const wrong = (options: object): HandlerOptions => ({
  publicUrl: "https://agents.example.com",
  store: memoryStore(),
  ...options,
});

async function takenPort(): Promise<number> {
  const other = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void other.close());
  await once(other, "listening");
  return (other.address() as AddressInfo).port;
}

const quiet = { logger: false, signals: false, store: memoryStore(), port: 0 } as const;
const open = { ...quiet, host: "0.0.0.0" } satisfies ServeOptions;
const publicUrl = "https://agents.example.com";

/** Calls that cause each of the messages. */
const mistakes: readonly (() => unknown)[] = [
  () => serve(agent, open),
  () => serve(agent, { ...open, authenticator: noAuthenticator() }),
  () => serve(agent, { ...open, authenticator: noAuthenticator(), publicUrl }),
  () => serve(agent, { ...open, insecure: true, publicUrl, push: true }),
  // `serve()` reads the key from a folder below the working directory.
  async () => developmentKey(await sharedKey()),
  async () => serve(agent, { ...quiet, port: await takenPort() }),
  () => createHandler(agent, wrong({ publicUrl: undefined })),
  () => createHandler(agent, wrong({ store: undefined })),
  () => createHandler(agent, wrong({ store: Promise.resolve(memoryStore()) })),
  () => createHandler(undefined as never, wrong({})),
  () => createHandler({ ...agent, capabilities: { pushNotifications: true } } as never, wrong({})),
  () => createHandler([{ agent, extendedCard: (card) => card }], wrong({})),
  () => createHandler(agent, wrong({ push: true })),
  () => createHandler(agent, wrong({ versions: ["2.0"] })),
  () => createHandler(agent, wrong({ limits: { bodyBytes: 0 } })),
];

/** Creates a folder with a key that other users may read. */
async function sharedKey(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "parley-key-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, ".parley"), { mode: 0o700 });
  await writeFile(join(folder, ".parley", "development-key"), "x", { mode: 0o644 });
  return join(folder, ".parley");
}

function noAuthenticator(): NonNullable<ServeOptions["authenticator"]> {
  return { securitySchemes: {}, securityRequirements: [], authenticate: () => Promise.resolve({ subject: "ada" }) };
}

async function messageOf(mistake: () => unknown): Promise<string> {
  try {
    await mistake();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("It was served");
}

test("each startup error of a server is on the page, and each on the page exists", async () => {
  const [, table = ""] = /## A server that does not start\n([\s\S]*)$/.exec(page) ?? [];
  const shown = [...table.matchAll(/^\| (`+)\s?(.*?)\s?\1 /gm)].map(([, , text = ""]) => text);
  const messages = await Promise.all(mistakes.map(messageOf));
  expect(shown).toHaveLength(mistakes.length);
  messages.forEach((message, at) => expect(message).toContain(shown[at]));
  for (const [at, message] of messages.entries()) expect(message.startsWith(shown[at] ?? "?")).toBe(true);
});

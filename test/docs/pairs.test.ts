import { describe, expect, it } from "vitest";
import { blocksOf, compile, room, run, start } from "./pages.ts";
import { reservePort } from "../ports.ts";

/** Runs the programs of pages that are pairs of a server and a client, where both print output. */

/** The output of each client, and the output of its server in the meantime. */
const pairs: Readonly<
  Record<string, readonly { readonly client: readonly string[]; readonly server: readonly string[] }[]>
> = {
  "docs/interceptors.md": [
    { client: ["DE02", "TaskNotFound"], server: ["anonymous SendMessage ok, ", "anonymous GetTask failed with "] },
    { client: ["The account is [account].\nThe account is [account].\n"], server: [] },
    {
      client: ["writer TASK_STATE_COMPLETED", 'reader PermissionDenied: SendMessage needs the scope "send"'],
      server: [],
    },
    { client: ["1: SendMessage\n2: SendMessage\n"], server: ["call 1: SendMessage", "call 2: SendMessage"] },
  ],
  "docs/authorization.md": [
    {
      client: ["TASK_STATE_AUTH_REQUIRED\nGive it at 127.0.0.1:", "TASK_STATE_WORKING\nPaid.\nTASK_STATE_COMPLETED"],
      server: [],
    },
  ],
  "docs/cards.md": [
    { client: ["Says whether it will rain.\nFor ada\n"], server: [] },
    { client: ["Payroll"], server: [] },
    { client: ["localhost is a name of an internal network"], server: [] },
  ],
  "docs/cookbook.md": [
    { client: ["You said: hello"], server: [] },
    { client: ["A picture of a tree\n"], server: [] },
    { client: ["Order 1 is made\n"], server: [] },
    { client: ["{ text: 'It will rain.' } { data: { rain: true } }"], server: [] },
    { client: ["1\n2\n"], server: [] },
    { client: ["42\n42\nTooManyRequests true\n"], server: [] },
    { client: ["TASK_STATE_CANCELED\n"], server: [] },
  ],
  "docs/extensions.md": [
    { client: ["draft: false"], server: [] },
    { client: ["1 a red sailboat"], server: [] },
  ],
  "docs/extension-api.md": [
    { client: ["card-1 / Charged to card-1."], server: [] },
    { client: ["{ notes: [ 'anonymous looks for milk' ] } https://example.com/extensions/notes/v1"], server: [] },
    { client: ["2 messages"], server: ["counted 2 messages"] },
  ],
};

describe.each(Object.entries(pairs))("%s", async (page, said) => {
  const blocks = await blocksOf(page);
  const servers = blocks.filter(({ role }) => role === "server");
  const clients = blocks.filter(({ role }) => role === "client");

  it("has a client for each of its servers", () => {
    expect([servers.length, clients.length]).toEqual([said.length, said.length]);
  });

  it.each(servers.map(({ code }, at) => [at, code] as const))("server %i and its client run", async (at, code) => {
    const port = String(await reservePort());
    const here = (program = ""): string => program.replaceAll("4000", port);
    const name = page.replaceAll(/\W/g, "-");
    const server = await start(`${name}-server-${at}.mts`, here(code));
    const file = await compile(`${name}-client-${at}.mts`, here(clients[at]?.code));
    const { stdout } = await run(process.execPath, [file], { cwd: room });
    for (const words of said[at]?.client ?? []) expect(stdout).toContain(words);
    for (const words of said[at]?.server ?? []) await expect.poll(() => server.printed()).toContain(words);
  });
});

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { compile, pagesWithPrograms, programsOf, room, root, run, start, type Program } from "./pages.ts";
import { reservePort } from "../ports.ts";

/**
 * Checks that every program of every page runs. Most pages need no entry here: the test starts each `ts server`, and runs each later `ts client` and
 * `sh run` against that server. A program must print every line of the `text printed` block that follows it. A client before any server of its
 * page runs against the server of the README.
 */

/**
 * Pages with their own test, because their programs need more setup. `"each"`: that test runs every program. Otherwise: the roles of the
 * programs that the page's own test runs, in order.
 */
const own: Readonly<Record<string, string>> = {
  "README.md": "install, server, client",
  "docs/authorization.md": "each",
  "docs/bindings.md": "server, client, test",
  "docs/cards.md": "each",
  "docs/client.md": "each",
  "docs/conform.md": "test, vitest, client",
  "docs/cookbook.md": "each",
  "docs/credentials.md": "server, client",
  "docs/deploy.md": "server",
  "docs/extension-api.md": "each",
  "docs/extensions.md": "each",
  "docs/interceptors.md": "each",
  "docs/migration.md": "official-server, server, official-client, client",
  "docs/push.md": "server, client, wait, operator",
  "docs/start.md": "server, client",
  "docs/stores.md": "claim, store, test",
  "docs/testing.md": "agent, test",
  // These programs run in workerd.
  "docs/workers.md": "object, plain",
  // The test of the tarballs runs the programs of the command line.
  "packages/a2a/README.md": "client",
  "packages/cli/README.md": "any",
  "packages/conform/README.md": "test",
  "packages/extensions/README.md": "server",
  "packages/grpc/README.md": "server, client",
  "packages/node/README.md": "server",
  "packages/server/README.md": "server",
  "packages/sql/README.md": "server",
  "packages/testing/README.md": "client",
};

const pages = pagesWithPrograms();

test("the pages with their own tests have them, and those run every program", () => {
  const tests = readdirSync(import.meta.dirname)
    .filter((file) => file.endsWith(".test.ts") && file !== "programs.test.ts")
    .concat("../runtimes/pages.test.ts")
    .map((file) => readFileSync(join(import.meta.dirname, file), "utf8"))
    .join("\n");
  expect(Object.keys(own).filter((page) => !pages.includes(page))).toEqual([]);
  for (const [page, roles] of Object.entries(own)) {
    // One test covers the pages of all packages.
    const name = page.startsWith("packages/") ? "`packages/${name}/README.md`" : `"${page}"`;
    expect(tests, page).toContain(name);
    if (roles !== "each")
      expect([
        page,
        programsOf(page)
          .map(({ role }) => role)
          .join(", "),
      ]).toEqual([page, roles]);
  }
});

/** A server and the programs that run against it. */
interface Story {
  readonly server: Program | undefined;
  readonly calls: Program[];
}

function storiesOf(page: string): readonly Story[] {
  const stories: Story[] = [];
  for (const program of programsOf(page)) {
    if (program.role === "server") stories.push({ server: program, calls: [] });
    else if (stories.length === 0) stories.push({ server: undefined, calls: [program] });
    else stories.at(-1)?.calls.push(program);
  }
  return stories;
}

/** The kinds of programs that run without their own test. */
const known = ["ts server", "ts client", "sh run"];

describe.each(pages.filter((page) => !(page in own)))("%s", (page) => {
  const name = page.replaceAll(/\W/g, "-");
  const usual = programsOf("README.md").find(({ role }) => role === "server");

  it("has no untested program", () => {
    const roles = programsOf(page).map(({ language, role }) => `${language} ${role}`);
    expect(roles.filter((role) => !known.includes(role))).toEqual([]);
  });

  it.each(storiesOf(page).map((story, at) => [at, story] as const))("program %i runs", async (at, story) => {
    const ports = [String(await reservePort()), String(await reservePort())] as const;
    const here = (code: string): string => code.replaceAll(/\b4000\b/g, ports[0]).replaceAll(/\b50051\b/g, ports[1]);
    const { url } = await start(`${name}-${at}.mts`, here((story.server ?? usual)?.code ?? ""));
    await checkCard(url, ports);
    for (const [index, { language, code, printed }] of story.calls.entries()) {
      const { stdout } =
        language === "sh"
          ? await run("sh", ["-ec", here(code)], { cwd: root })
          : await run(process.execPath, [await compile(`${name}-${at}-${index}.mts`, here(code))], { cwd: room });
      for (const line of printed) expect(stdout.split("\n")).toContain(line);
    }
  });
});

/** Checks that the card names addresses at which the program listens, because clients find a server by its card. */
async function checkCard(url: string, ports: readonly string[]): Promise<void> {
  // A server that listens on 0.0.0.0 is also reachable at 127.0.0.1.
  const card = await fetch(`${url.replace("0.0.0.0", "127.0.0.1")}/.well-known/agent-card.json`);
  expect(card.status).toBe(200);
  const { supportedInterfaces } = (await card.json()) as { supportedInterfaces: { url: string }[] };
  expect(supportedInterfaces).not.toEqual([]);
  const local = supportedInterfaces.flatMap(({ url: at }) => /(?:localhost|127\.0\.0\.1):(\d+)/.exec(at)?.[1] ?? []);
  for (const port of local) expect([...ports, new URL(url).port]).toContain(port);
}

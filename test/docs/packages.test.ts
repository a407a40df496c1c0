import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { blocksOf, compile, room, root, run, start } from "./pages.ts";
import { reservePort } from "../ports.ts";

/** A package's README is its page in the registry, so it has a description, the installation, and the smallest program. */

const packages = readdirSync(join(root, "packages"));
/** The output of a package's last program. */
const prints: Readonly<Record<string, string>> = { a2a: "Hello\n", grpc: "GRPC Hello\n", testing: "Hello\n" };

/** Returns a Node server for the handler that a program exports for Bun and Deno. */
const hosted = (file: string): string => `
  import { createServer } from "node:http";
  import { Readable } from "node:stream";
  import host from ${JSON.stringify(file)};
  createServer(async (request, response) => {
    const { method, headers } = request;
    const url = new URL(request.url, "http://" + headers.host);
    const body = method === "POST" ? { body: Readable.toWeb(request), duplex: "half" } : {};
    const answer = await host.fetch(new Request(url, { method, headers, ...body }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(await answer.text());
  }).listen(host.port, () => console.log("Listening on http://localhost:" + host.port));`;

describe.each(packages)("packages/%s/README.md", (name) => {
  const page = `packages/${name}/README.md`;

  it("says in one screen how to install and start it, and where to read on", async () => {
    const text = await readFile(join(root, page), "utf8");
    expect(text).toMatch(new RegExp(`^# @parley/${name}\n`));
    expect(text).toMatch(new RegExp(`^npm install .*@parley/${name}\\b`, "m"));
    const [firstProgram] = text.split(/^```ts/m);
    expect(firstProgram?.split("\n").length).toBeLessThan(50);
    // The registry does not show the repository's other files, so links must be absolute.
    const { repository } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
      repository: { url: string };
    };
    const files = `${repository.url.replace(/^git\+(.*)\.git$/, "$1")}/blob/main/`;
    const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link = ""]) => link);
    for (const link of links) expect(link).toMatch(/^https:/);
    const pages = links.filter((link) => link.startsWith(files));
    expect(pages).not.toEqual([]);
    for (const link of pages) expect(existsSync(join(root, link.slice(files.length))), link).toBe(true);
    for (const link of links.filter((one) => one.startsWith("https://www.npmjs.com/package/@parley/")))
      expect(packages).toContain(link.split("/").at(-1));
  });

  it("has programs that run", async () => {
    const port = String(await reservePort());
    const blocks = await blocksOf(page);
    const program = (role: string): string =>
      (blocks.find((block) => block.role === role)?.code ?? "").replaceAll("4000", port);
    // The README of the CLI has no program, and the tests of the tarballs run its command line.
    if (name === "cli") return expect(blocks.map(({ language }) => language)).toEqual(["sh", "sh", "sh"]);
    const echo = (await blocksOf("packages/node/README.md")).find(({ role }) => role === "server")?.code ?? "";
    const server = program("server") || echo.replaceAll("4000", port);
    if (server.includes("export default")) {
      const file = await compile(`${name}-fetch.mts`, server);
      await start(`${name}-host.mts`, hosted(file));
    } else await start(`${name}-server.mts`, server);
    for (const role of ["client", "test"].filter((one) => program(one) !== "")) {
      const { stdout } = await run(process.execPath, [await compile(`${name}-${role}.mts`, program(role))], {
        cwd: room,
      });
      if (role === "client") expect(stdout).toBe(prints[name]);
      else expect(stdout).toContain("my server conforms to A2A");
    }
    const client =
      'import { connect } from "@parley/a2a";\nawait (await connect("http://localhost:4000")).sendMessage("Hi");';
    await run(process.execPath, [await compile(`${name}-any.mts`, client.replace("4000", port))], { cwd: room });
  });
});

import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import frameworks from "../../packages/cli/templates/frameworks.json" with { type: "json" };
import { entriesOf } from "../../scripts/entries.mjs";
import { publishedPackages } from "../../scripts/tarballs.mjs";
import { blocksOf, root } from "../docs/pages.ts";
import { reservePort } from "../ports.ts";
import { openPublished, type Published } from "./published.ts";

/** Tests the tarballs as users get them, installed into empty projects by npm and by pnpm. */

const exec = promisify(execFile);
const compilers = {
  "5.0": createRequire(join(root, "test/types/package.json")).resolve("typescript/package.json"),
  newest: join(root, "node_modules/typescript/package.json"),
};

let published: Published;
beforeAll(async () => {
  published = await openPublished();
});
afterAll(() => published.close());
afterEach(() => published.kill());

const shell = (line: string, cwd: string): Promise<string> => published.shell(line, cwd);

const program = async (role: string): Promise<string> =>
  (await blocksOf("README.md")).find((block) => block.role === role)?.code ?? "";

/** Compiles files of a project, and returns the compiler's output. */
async function compile(
  compiler: keyof typeof compilers,
  project: string,
  resolution: "nodenext" | "bundler",
  files: readonly string[],
): Promise<string> {
  const web = { module: "esnext", lib: ["es2022", "dom", "dom.iterable"] };
  const host = resolution === "nodenext" ? { module: "nodenext", lib: ["es2022"] } : web;
  const checks = { noEmit: true, strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false };
  const config = { target: "es2022", types: ["node"], moduleResolution: resolution, ...host, ...checks };
  const file = join(project, `tsconfig.${resolution}.json`);
  await writeFile(file, JSON.stringify({ compilerOptions: config, files }));
  const tsc = join(compilers[compiler], "../bin/tsc");
  return exec(process.execPath, [tsc, "-p", file], { cwd: project }).then(
    ({ stdout }) => stdout,
    (error: unknown) => (error as { stdout: string }).stdout,
  );
}

/** Returns every entry point of the project's packages. */
function entries(): readonly string[] {
  return publishedPackages()
    .filter(({ manifest }) => ["node", "sql", ...others].some((name) => manifest.name === `@parley/${name}`))
    .flatMap(({ folder, manifest: { name, exports } }) =>
      entriesOf(folder, exports).map(([path]) => name + path.slice(1)),
    )
    .filter((entry) => !/\/(express|fastify)$/.test(entry));
}

/** Packages to test in addition to those that the README installs. */
const others = ["a2a", "server", "extensions", "testing", "sql"];

/** Returns a program with an agent and its client, which prints the client's result. */
const selfTest = (load: (name: string) => string): string => `
  const { defineAgent, memoryStore, createHandler } = ${load("@parley/server")};
  const { connect } = ${load("@parley/a2a")};
  const agent = defineAgent({
    name: "Echo", description: "Says it again.", version: "1.0.0", skills: [],
    onMessage: (turn) => turn.reply(turn.text),
  });
  const handler = createHandler(agent, { store: memoryStore(), publicUrl: "http://agent.example" });
  const fetch = (input, init) => handler.fetch(new Request(input, init));
  connect("http://agent.example", { fetch })
    .then((client) => client.sendMessage("Hello"))
    .then(({ message }) => console.log(message.parts[0].text));`;

describe.each(["npm", "pnpm"])("a project of %s", (manager) => {
  let project = "";
  beforeAll(async () => {
    project = join(published.home, manager);
    await mkdir(project);
    await mkdir(join(published.home, "bin"), { recursive: true });
    if (manager === "pnpm")
      await symlink(join(root, "node_modules/pnpm/bin/pnpm.cjs"), join(published.home, "bin/pnpm"));
    // Runs the README's lines in an empty folder. With pnpm, two of the lines are other commands.
    const lines = await program("install");
    const own = lines.replaceAll("npm install --save-dev", "pnpm add --save-dev").replaceAll("npm install", "pnpm add");
    await shell(manager === "npm" ? lines : own, project);
    await shell(
      manager === "npm" ? "npm install -D @types/node@20 @parley/cli" : "pnpm add -D @types/node@20 @parley/cli",
      project,
    );
    await writeFile(join(project, "server.ts"), await program("server"));
    await writeFile(join(project, "client.ts"), await program("client"));
  });

  test("has the tarballs, each in this version", async () => {
    const { version } = JSON.parse(await readFile(join(root, "packages/a2a/package.json"), "utf8")) as {
      version: string;
    };
    const { dependencies } = JSON.parse(await readFile(join(project, "package.json"), "utf8")) as {
      dependencies: Record<string, string>;
    };
    expect(await program("install")).toContain("npm install @parley/node");
    expect(dependencies["@parley/node"]).toMatch(new RegExp(`^\\^?${version}$`));
    const installed = JSON.parse(
      await readFile(join(project, "node_modules/@parley/node/package.json"), "utf8"),
    ) as object;
    expect(installed).toMatchObject({ version });
  });

  test("compiles its server and its client with only these packages, then also has the others beside them", async () => {
    expect(await compile("newest", project, "nodenext", ["server.ts", "client.ts"])).toBe("");
    const names = others.map((name) => `@parley/${name}`).join(" ");
    await shell(manager === "npm" ? `npm install ${names}` : `pnpm add ${names}`, project);
  });

  // The newest compiler runs with each module resolution. The oldest one takes ten times as long, so it runs only in the folders of pnpm. test/types
  // compiles in the folders of npm, with that version and more.
  const pairs: readonly (readonly [keyof typeof compilers, "nodenext" | "bundler"])[] =
    manager === "npm"
      ? [["newest", "bundler"]]
      : [
          ["5.0", "bundler"],
          ["newest", "nodenext"],
        ];
  test.each(pairs)("compiles with TypeScript %s and %s resolution", async (compiler, resolution) => {
    const all = entries().map((entry, at) => `export * as entry${at} from "${entry}";\n`);
    await writeFile(join(project, "entries.ts"), all.join(""));
    expect(await compile(compiler, project, resolution, ["entries.ts", "server.ts", "client.ts"])).toBe("");
  });

  test("loads every entry point from ES modules, and the core and its client answer there", async () => {
    const imports = entries().map((entry) => `await import("${entry}");\n`);
    await writeFile(join(project, "self.mjs"), imports.join("") + selfTest((name) => `await import("${name}")`));
    expect(await shell("node self.mjs", project)).toBe("Hello\n");
  });

  test("loads every entry point with require(), and the core and its client answer there", async () => {
    const calls = entries().map((entry) => `require("${entry}");\n`);
    await writeFile(join(project, "self.cjs"), calls.join("") + selfTest((name) => `require("${name}")`));
    expect(await shell("node self.cjs", project)).toBe("Hello\n");
  });

  test("has the pages of the packaged extensions, and what they link to", async () => {
    const packaged = entries().flatMap((entry) => /^@parley\/extensions\/(.+)$/.exec(entry)?.[1] ?? []);
    expect(packaged.length).toBeGreaterThan(7);
    const places = {
      extensions: ["src", packaged],
      a2a: ["src/extensions", ["idempotent-sends", "resumable-streams"]],
    } as const;
    for (const [of, [folder, names]] of Object.entries(places)) {
      const installed = join(project, "node_modules/@parley", of);
      for (const name of names) {
        const page = `${folder}/${name}/README.md`;
        const text = await readFile(join(installed, page), "utf8");
        expect(text).toBe(await readFile(join(root, "packages", of, page), "utf8"));
        const links = [...text.matchAll(/\]\(([^)\s:#]+)[^):]*\)/g)].map(([, link = ""]) => link);
        for (const link of links) expect(await readFile(join(installed, dirname(page), link), "utf8")).toMatch(/^# /);
      }
      // The package has no other source files.
      expect((await readdir(join(installed, folder))).sort()).toEqual([...names].sort());
    }
    expect(await readdir(join(project, "node_modules/@parley/a2a/src"))).toEqual(["extensions"]);
  });

  test("has types for require()", async () => {
    const right = `import parley = require("@parley/node");\nexport const store: parley.Store = parley.memoryStore();\n`;
    await writeFile(join(project, "typed.cts"), right);
    expect(await compile("newest", project, "nodenext", ["typed.cts"])).toBe("");
    await writeFile(join(project, "wrong.cts"), right.replace("parley.Store ", "number "));
    expect(await compile("newest", project, "nodenext", ["wrong.cts"])).toContain("is not assignable to type 'number'");
  });

  test("runs the server and the client of the README as described, and the command line", async () => {
    const port = String(await reservePort());
    const here = (code: string): string => code.replaceAll("4000", port);
    await writeFile(join(project, "server.ts"), here(await program("server")));
    await writeFile(join(project, "client.ts"), here(await program("client")));
    await published.serving("npx tsx server.ts", project, /Listening on/);
    expect(await shell("npx tsx client.ts", project)).toMatch(/It is certain\.\nTASK_STATE_COMPLETED\n$/);
    const line = (await blocksOf("README.md")).find(({ code }) => code.startsWith("npx @parley/cli send"))?.code ?? "";
    expect(await shell(here(line), project)).toContain("It is certain.");
    const { version } = JSON.parse(await readFile(join(root, "packages/cli/package.json"), "utf8")) as {
      version: string;
    };
    expect(await published.manifest("@parley/cli", version)).toMatchObject({ version });
    expect(await shell("npx --no-install parley --version", project)).toBe(`${version}\n`);
  });

  test("is bundled by esbuild: a server for Node, and a client for browsers without a Node module", async () => {
    const port = String(await reservePort());
    const bundle = async (role: string, platform: "node" | "browser"): Promise<string> => {
      const code = (await program(role)).replaceAll("4000", port);
      // In a browser, `@parley/a2a` provides the client.
      const own = platform === "browser" ? code.replace("@parley/node", "@parley/a2a") : code;
      await writeFile(join(project, `${role}.ts`), own);
      const outfile = join(project, `${role}.bundle.mjs`);
      const entryPoints = [join(project, `${role}.ts`)];
      const { warnings } = await build({
        absWorkingDir: project,
        entryPoints,
        outfile,
        bundle: true,
        platform,
        format: "esm",
        external: ["libsql"],
      });
      expect(warnings).toEqual([]);
      return readFile(outfile, "utf8");
    };
    await bundle("server", "node");
    expect(await bundle("client", "browser")).not.toMatch(/from "(node:|[a-z@])/);
    await published.serving("node server.bundle.mjs", project, /Listening on/);
    expect(await shell("node client.bundle.mjs", project)).toMatch(/It is certain\.\nTASK_STATE_COMPLETED\n$/);
  });
});

describe("parley init, from the tarball", () => {
  test("writes a project that can be installed, tested, checked, served and called as described", async () => {
    const first = join(published.home, "first");
    await mkdir(first);
    await writeFile(join(first, "package.json"), "{}");
    await shell("npm install @parley/cli", first);
    const said = await shell("npx @parley/cli init my-agent", first);
    expect(said).toContain("  cd my-agent\n  npm install\n  npm start\n");
    const project = join(first, "my-agent");
    await shell("npm install", project);
    expect(await shell("npm test", project)).toMatch(/^# fail 0$/m);
    await shell("npm run check", project);
    const url = await published.serving("npm start -- --port 0", project, /is ready at (\S+)\n/);
    expect(await shell(`npx parley send ${url} "roll 3d1"`, project)).toContain("1 + 1 + 1 = 3");
    expect(await shell(`npx parley send ${url} roll`, project)).toContain("Which dice? For example 2d6.");
    expect(await readdir(join(project, ".parley"))).toContain("parley.db");
  });

  test.each(Object.keys(frameworks))("writes a project with %s that does the same", async (framework) => {
    const project = join(published.home, `with-${framework}`);
    const init = `npm exec --yes --package=@parley/cli -- parley init with-${framework} --with ${framework}`;
    expect(await shell(init, published.home)).toContain("A scripted model answers.");
    await shell("npm install", project);
    expect(await shell("npm test", project)).toMatch(/^# fail 0$/m);
    await shell("npm run check", project);
    const url = await published.serving("npm start -- --port 0", project, /is ready at (\S+)\n/);
    expect(await shell(`npx parley send ${url} "roll 3d1"`, project)).toContain("1 + 1 + 1 = 3");
  });
});

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { blocksOf } from "../docs/pages.ts";
import { reservePort } from "../ports.ts";
import { openPublished, type Published } from "./published.ts";

/** Writes and publishes the extension of docs/extensions.md, line by line, in a folder that is empty except for the tarballs. */

let published: Published;
beforeAll(async () => {
  published = await openPublished();
});
afterAll(() => published.close());
afterEach(() => published.kill());

test("an extension is written, tested, published, and switched on by others, as the page says", async () => {
  const { home, url, manifest: manifestOf, shell, serving } = published;
  const blocks = await blocksOf("docs/extensions.md");
  const port = String(await reservePort());
  const codeOf = (role: string): string =>
    (blocks.find((block) => block.role === role)?.code ?? "").replaceAll("4000", port);
  const author = join(home, "author");
  await mkdir(author);
  await shell(codeOf("setup"), author);
  const project = join(author, "a2a-confidence");
  await writeFile(join(project, "confidence.ts"), codeOf("extension"));
  await writeFile(join(project, "confidence.test.ts"), codeOf("contract"));
  const [tests = "", compiled = "", publish = ""] = codeOf("build").trim().split("\n");
  const said = await shell(tests, project);
  expect(said).toMatch(/fail 0$/m);
  expect(Number(/pass (\d+)$/m.exec(said)?.[1])).toBeGreaterThan(20);
  await shell(compiled, project);
  expect(publish).toBe("npm publish");
  await shell(`${publish} --registry ${url}`, project);
  const sent = await manifestOf("a2a-confidence", "1.0.0");
  expect(sent).toMatchObject({ name: "a2a-confidence", version: "1.0.0" });
  const manifest = JSON.parse(await readFile(join(project, "package.json"), "utf8")) as object;
  expect(manifest).toMatchObject({ exports: "./dist/confidence.js", peerDependencies: { "@parley/a2a": ">=0.1.0" } });

  const user = join(home, "user");
  await mkdir(user);
  const use = codeOf("use");
  expect(use).toContain(" a2a-confidence\n");
  // The test registry serves only Parley's scope, so this package is installed by its tarball.
  const { tarball } = sent["dist"] as { readonly tarball: string };
  await shell(use.replace(" a2a-confidence", ` ${tarball}`), user);
  const app = join(user, "translator");
  await writeFile(join(app, "agent.ts"), codeOf("agent"));
  await writeFile(join(app, "client.ts"), codeOf("asks"));
  await serving("npx tsx agent.ts", app, /Listening on/);
  expect(await shell("npx tsx client.ts", app)).toBe("chat (0.9)\n");
});

// Runs the programs of docs/start.md, kills the agent in the middle, and writes what both terminals showed to site/public/crash.svg.

import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { ready, root } from "../scripts/ready.mjs";

/** @typedef {{ readonly at: number, readonly text: string, readonly style: "command" | "output" | "note" }} Line `at`: seconds. */

/** The programs of a page, by the comment with the file name in their first line. @param {string} page */
function programsOf(page) {
  const blocks = page.matchAll(/^```ts.*\n\/\/ (\S+\.ts)\n([^]*?)^```/gm);
  return Object.fromEntries([...blocks].map(([, name = "", code = ""]) => [name, code]));
}

/** A terminal that remembers when each line was shown. */
class Terminal {
  /** @type {Line[]} */
  lines = [];
  #shown = new EventEmitter();
  /** @param {number} start @param {string} folder */
  constructor(start, folder) {
    this.start = start;
    this.folder = folder;
  }

  /** @param {string} text @param {Line["style"]} style */
  show(text, style) {
    this.lines.push({ at: (performance.now() - this.start) / 1000, text, style });
    this.#shown.emit("line");
  }

  /** @param {string} file */
  run(file) {
    this.show(`$ npx tsx ${file}`, "command");
    const child = spawn(process.execPath, ["--import", "tsx", file], {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "inherit"],
    });
    createInterface({ input: child.stdout }).on("line", (text) => this.show(text, "output"));
    return child;
  }

  /** Resolves once a line begins with the text. @param {string} text */
  async until(text) {
    while (!this.lines.some((line) => line.text.startsWith(text))) await once(this.#shown, "line");
  }
}

async function record() {
  const programs = programsOf(readFileSync(join(root, "docs", "start.md"), "utf8"));
  const cache = join(root, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "parley-record-"));
  for (const [name, code] of Object.entries(programs)) writeFileSync(join(folder, name), code);
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const start = performance.now();
  const [server, client] = [new Terminal(start, folder), new Terminal(start, folder)];
  const first = server.run("agent.ts");
  await server.until("Listening");
  const reader = client.run("client.ts");
  await client.until("2");
  first.kill("SIGKILL");
  server.show("Killed", "note");
  await setTimeout(1000);
  const second = server.run("agent.ts");
  await once(reader, "exit");
  second.kill("SIGTERM");
  await once(second, "exit");
  rmSync(folder, { recursive: true, force: true });
  return { server: server.lines, client: client.lines };
}

const lineHeight = 22;
const paneWidth = 420;

/** @param {string} text */
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** @param {string} title @param {readonly Line[]} lines @param {number} x @param {number} height */
function pane(title, lines, x, height) {
  const texts = lines.map(({ at, text, style }, row) => {
    const place = `x="${x + 16}" y="${60 + row * lineHeight}" class="${style}"`;
    return `<text ${place} style="animation: show 0s ${at.toFixed(2)}s both">${escaped(text)}</text>`;
  });
  const frame = `<rect x="${x}" width="${paneWidth}" height="${height}" rx="8" class="pane"/>`;
  return [frame, `<text x="${x + 16}" y="26" class="title">${title}</text>`, ...texts].join("\n");
}

/** @param {{ readonly server: readonly Line[], readonly client: readonly Line[] }} lines */
function svgOf({ server, client }) {
  const height = 60 + Math.max(server.length, client.length) * lineHeight;
  const width = 2 * paneWidth + 12;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, monospace" font-size="14">
<title>The agent is killed while it answers. It is started again, and the client prints each number once.</title>
<style>
.pane { fill: #0d1117; stroke: #30363d; }
.title { fill: #8b949e; font-size: 12px; }
.command { fill: #79c0ff; }
.output { fill: #e6edf3; }
.note { fill: #ff7b72; }
@keyframes show { from { opacity: 0; } to { opacity: 1; } }
@media (prefers-reduced-motion: reduce) { text { animation: none !important; } }
</style>
${pane("agent", server, 0, height)}
${pane("client", client, paneWidth + 12, height)}
</svg>
`;
}

/** Writes the recording. */
export async function writeRecording() {
  await ready();
  writeFileSync(join(root, "site", "public", "crash.svg"), svgOf(await record()));
}

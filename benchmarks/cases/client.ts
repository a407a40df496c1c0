import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { defined, type Case, type Figures } from "../case.ts";
import type { ClientOutcome } from "../load/client.ts";
import { chunkText } from "../servers/commands.ts";
import { inTurn } from "../rounds.ts";

/** Size in bytes, minified and gzipped, of a page that imports this. */
async function bundled(code: string): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: fileURLToPath(new URL("..", import.meta.url)) },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    write: false,
    logLevel: "error",
  });
  return gzipSync(outputFiles[0]?.contents ?? "", { level: 9 }).length;
}

/** Characters of the texts of a stream. */
function charactersOf(chunks: number): number {
  let characters = 0;
  for (let number = 0; number < chunks; number++) characters += chunkText(number).length;
  return characters;
}

export const clientCase: Case = {
  name: "client",
  what: "Reading a stream with the client of each library",
  operation: "an event",
  targets: [{ measure: "cpuToOfficial", says: "CPU of the client an event, to official", atMost: 1 / 3 }],
  why: "`fetch` hands out the bytes for a seventh of what the official client takes, and `JSON.parse` alone takes a third. So a chunk that differs from the one before in its text alone is not parsed whole: the rest is compared, at a fifth of the price. What is left is small change everywhere: lines, a promise and a turn of `for await` for each event, garbage. BYOB readers, `for await` over the body and `getReader` take the same; `TextDecoderStream` takes more; one `JSON.parse` for all events of a piece and finding fields without a string for the line gain next to nothing. Where events come one by one, the socket takes nearly all, whoever reads it.",
  async run(bench) {
    const [server, raw, parley, official] = await Promise.all([
      bench.server("raw"),
      bench.child("load/client-raw"),
      bench.child("load/client-parley"),
      bench.child("load/client-official"),
    ]);
    const events = bench.size(150_000, 30_000);
    const reading = (child: typeof parley, count: number, kind: number) => async (): Promise<Figures> => {
      const input = { url: server.jsonRpc, text: `stream ${count} ${kind}` };
      const { operations, characters, seconds, cpu, rss } = await child.ask<ClientOutcome>("read", input);
      if (operations !== count + 1 || characters !== charactersOf(count)) {
        throw new Error(`A client read ${operations} events with ${characters} characters of ${count} chunks`);
      }
      return { throughput: operations / seconds, cpu: cpu / operations, memory: rss / 2 ** 20 };
    };
    const bytes = async (): Promise<Figures> => {
      const input = { url: server.jsonRpc, text: `stream ${events} 0` };
      const { seconds, cpu, rss } = await raw.ask<ClientOutcome>("bytes", input);
      return { throughput: events / seconds, cpu: cpu / events, memory: rss / 2 ** 20 };
    };
    const few = bench.size(30_000, 3_000);
    const subjects = {
      parley: reading(parley, events, 0),
      official: reading(official, events, 0),
      raw: reading(raw, events, 0),
      bytes,
      parleyAlone: reading(parley, few, 1),
      officialAlone: reading(official, few, 1),
      parleyUnlike: reading(parley, events / 2, 2),
      officialUnlike: reading(official, events / 2, 2),
    };
    const figures = await inTurn(bench.size(9, 3), subjects, bench.size(2, 4));
    const [ours, whole, theirs] = await Promise.all([
      bundled('export { connectJsonRpc } from "@parley/a2a/client";'),
      bundled('export { connect } from "@parley/a2a/client";'),
      bundled('export { ClientFactory } from "@a2a-js/sdk/client";'),
    ]);
    const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;
    return {
      parley: figures.parley,
      official: figures.official,
      raw: figures.raw,
      also: {
        "fetch, bytes alone": figures.bytes,
        "parley, events one by one": figures.parleyAlone,
        "official, events one by one": figures.officialAlone,
        "parley, chunks with metadata": figures.parleyUnlike,
        "official, chunks with metadata": figures.officialUnlike,
      },
      measures: defined({ bundle: whole, bundleJsonRpc: ours, bundleOfficial: theirs }),
      notes: [
        `Bundled, minified and gzipped: ${kilobytes(whole)} (JSON-RPC alone ${kilobytes(ours)}), official ${kilobytes(theirs)}.`,
        "The figures are the client process's, not the server's: all read the same streams of the raw server, the text of each chunk too. Raw is fetch and JSON.parse alone.",
        "The server writes 64 events at a time, as one that is ahead of its reader does; one by one, each comes in a write of its own.",
        "Most chunks differ from the one before in their text alone, as those of a language model do; that is what Parley's client is quick at. Where each has metadata of its own, it is parsed whole by both.",
      ],
    };
  },
};

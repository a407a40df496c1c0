import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { defined, type Case, type Figures } from "../case.ts";
import type { ClientOutcome } from "../load/client.ts";
import { chunkText } from "../servers/commands.ts";
import { inTurn } from "../rounds.ts";

/** The size of a page that imports this, in bytes, minified and gzipped. */
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

/** The number of characters in a stream's texts. */
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
  why: "Of the CPU of the official client, `fetch` takes a seventh and `JSON.parse` a third. So a chunk that differs from the previous one only in its text is compared, not parsed, which takes a fifth of the time. The rest is spread over lines, a promise and a step of `for await` for each event, and garbage. BYOB readers, `for await` over the body and `getReader` take the same time; `TextDecoderStream` takes more. One `JSON.parse` for all events of a piece saves nearly nothing. If events arrive one by one, the socket takes nearly all of the time in both clients.",
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
    const figures = await inTurn(bench.size(9, 3), subjects);
    const [ours, whole, theirs] = await Promise.all([
      bundled('export { connectJsonRpc } from "@parley/a2a";'),
      bundled('export { connect } from "@parley/a2a";'),
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
        "The figures are those of the client process. All clients read the same streams of the raw server, with the text of each chunk. Raw is fetch and JSON.parse alone.",
        "The server writes 64 events at a time, like a server that is ahead of its reader. In the rows with events one by one, each event is a separate write.",
        "Most chunks differ from the previous one only in their text, like those of a language model. Parley's client reads such chunks fast. Both clients parse all of a chunk with its own metadata.",
      ],
    };
  },
};

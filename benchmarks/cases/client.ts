import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { defined, type Case, type Figures } from "../case.ts";
import type { ClientOutcome } from "../load/client.ts";
import { inTurn } from "../rounds.ts";

/** Bytes, gzipped, of what a page that imports this has to load. */
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

export const clientCase: Case = {
  name: "client",
  what: "Reading a stream with the client of each library",
  operation: "an event",
  targets: [{ measure: "cpuToOfficial", says: "CPU of the client an event, to official", atMost: 1 / 3 }],
  async run(bench) {
    const [server, raw, parley, official] = await Promise.all([
      bench.server("raw"),
      bench.child("load/client-raw"),
      bench.child("load/client-parley"),
      bench.child("load/client-official"),
    ]);
    const events = bench.size(50_000, 20_000);
    const reading = (child: typeof parley) => async (): Promise<Figures> => {
      const input = { url: server.jsonRpc, text: `stream ${events} 0` };
      const { operations, seconds, cpu, rss } = await child.ask<ClientOutcome>("read", input);
      if (operations < events) throw new Error(`A client read ${operations} of ${events} events`);
      return { throughput: operations / seconds, cpu: cpu / operations, memory: rss / 2 ** 20 };
    };
    const figures = await inTurn(bench.size(7, 3), {
      parley: reading(parley),
      official: reading(official),
      raw: reading(raw),
    });
    const [ours, whole, theirs] = await Promise.all([
      bundled('export { connectJsonRpc } from "@parley/a2a/client";'),
      bundled('export { connect } from "@parley/a2a/client";'),
      bundled('export { ClientFactory } from "@a2a-js/sdk/client";'),
    ]);
    const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;
    return {
      ...figures,
      measures: defined({ bundle: whole, bundleJsonRpc: ours, bundleOfficial: theirs }),
      notes: [
        `Bundled, minified and gzipped: ${kilobytes(whole)} (JSON-RPC alone ${kilobytes(ours)}), official ${kilobytes(theirs)}.`,
        "The figures are the client process's, not the server's: all read the same streams of the raw server. Raw is fetch and JSON.parse alone.",
      ],
    };
  },
};

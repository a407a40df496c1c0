import type { Server } from "../bench.ts";
import type { Case, Figures } from "../case.ts";
import type { GrpcLoad, GrpcStreamOutcome } from "../load/grpc.ts";
import { costing, inTurn } from "../rounds.ts";

const length = 16_000;

export const grpcStreamCase: Case = {
  name: "grpc-stream",
  what: `One stream of ${length} chunks over gRPC, in memory`,
  operation: "a chunk",
  targets: [{ measure: "cpuToRaw", says: "CPU to a stream of grpc-js", atMost: 1.3 }],
  async run(bench) {
    const [parley, raw, load] = await Promise.all([
      bench.server("parley"),
      bench.server("raw"),
      bench.child("load/grpc"),
    ]);
    /** Size of a chunk in bytes. */
    const sizes: Partial<Record<Server["name"], number>> = {};
    const streaming = async (server: Server, chunks: number): Promise<() => Promise<Figures>> => {
      const input: GrpcLoad = { address: await server.grpc(), text: `stream ${chunks} 0` };
      return () =>
        costing(server, async () => {
          const outcome = await load.ask<GrpcStreamOutcome>("stream", input);
          if (outcome.chunks < chunks) throw new Error(`A stream ended after ${outcome.chunks} of ${chunks} chunks`);
          sizes[server.name] = outcome.bytes / outcome.chunks;
          return { operations: outcome.chunks, seconds: outcome.seconds };
        });
    };
    const subjects = { parley: await streaming(parley, length), raw: await streaming(raw, length) };
    const figures = await inTurn(bench.size(9, 3), subjects);
    const size = `A chunk has ${Math.round(sizes.parley ?? 0)} bytes, ${Math.round(sizes.raw ?? 0)} of raw, which is the server of grpc-js with protobufjs.`;
    // No target depends on the official SDK, so a quick run omits it.
    if (bench.quick) return { ...figures, notes: [size] };
    const few = 1_000;
    const officially = await streaming(await bench.server("official"), few);
    await officially();
    return {
      ...figures,
      also: { [`official, ${few} chunks`]: await officially() },
      notes: [size, "The official SDK takes quadratic time: it gets a shorter stream."],
    };
  },
};

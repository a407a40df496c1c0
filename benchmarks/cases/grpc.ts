import type { Server } from "../bench.ts";
import type { Case } from "../case.ts";
import type { GrpcCallsLoad } from "../load/grpc.ts";
import type { RequestOutcome } from "../load/requests.ts";
import { costing, inTurn, type Subject } from "../rounds.ts";
import { question } from "./message.ts";

export const grpcCase: Case = {
  name: "grpc",
  what: "SendMessage answered by a Message over gRPC, in memory",
  operation: "a call",
  targets: [{ measure: "cpuToRaw", says: "CPU to the echo server of grpc-js", atMost: 1.3 }],
  why: "Node's HTTP/2 is about two thirds of a call on both sides. Head and answer leave in one write, and the trailers in a second, because Node passes them on in the next turn; grpc-js does the same. The layer of Parley takes 2 µs, and the codec 1 µs. The work for a message, which the echo server does not do, takes 11 µs. A quick run ends before all of it is compiled. [gRPC](decisions/grpc.md) has the measurements.",
  async run(bench) {
    const [parley, raw, load] = await Promise.all([
      bench.server("parley"),
      bench.server("raw"),
      bench.child("load/grpc"),
    ]);
    const calling = async (server: Server): Promise<Subject> => {
      const address = await server.grpc();
      const all = { address, text: `reply ${question}`, expect: "forty-two", connections: 32 };
      const calls = (bounds: Pick<GrpcCallsLoad, "seconds" | "most">): Promise<RequestOutcome> =>
        load.ask<RequestOutcome>("calls", { ...all, ...bounds } satisfies GrpcCallsLoad);
      return {
        warmUp: () => calls(bench.warmUp),
        measure: () => costing(server, () => calls({ seconds: bench.size(0.6, 0.15), most: 100_000 })),
      };
    };
    const subjects = { parley: await calling(parley), raw: await calling(raw) };
    // No target depends on the official SDK, so a quick run omits it.
    const figures = bench.quick
      ? await inTurn(3, subjects)
      : await inTurn(7, { official: await calling(await bench.server("official")), ...subjects });
    return {
      ...figures,
      notes: ["Raw is the server of grpc-js with protobufjs; all are called by the client of grpc-js."],
    };
  },
};

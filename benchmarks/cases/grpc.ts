import type { Server } from "../bench.ts";
import type { Case, Figures } from "../case.ts";
import type { GrpcCallsLoad } from "../load/grpc.ts";
import type { RequestOutcome } from "../load/requests.ts";
import { costing, inTurn } from "../rounds.ts";
import { question, warmups } from "./message.ts";

export const grpcCase: Case = {
  name: "grpc",
  what: "SendMessage answered by a Message over gRPC, in memory",
  operation: "a call",
  targets: [{ measure: "cpuToRaw", says: "CPU to the echo server of grpc-js", atMost: 1.3 }],
  async run(bench) {
    const [parley, official, raw, load] = await Promise.all([
      bench.server("parley"),
      bench.server("official"),
      bench.server("raw"),
      bench.child("load/grpc"),
    ]);
    const calling = async (server: Server): Promise<() => Promise<Figures>> => {
      const round: GrpcCallsLoad = {
        address: await server.grpc(),
        text: `reply ${question}`,
        expect: "forty-two",
        connections: 32,
        seconds: bench.size(0.8, 0.15),
      };
      return () => costing(server, () => load.ask<RequestOutcome>("calls", round));
    };
    const subjects = { parley: await calling(parley), official: await calling(official), raw: await calling(raw) };
    return {
      ...(await inTurn(bench.size(5, 3), subjects, warmups)),
      notes: ["Raw is the server of grpc-js with protobufjs; all are called by the client of grpc-js."],
    };
  },
};

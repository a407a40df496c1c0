import type { Server } from "../bench.ts";
import type { Case, Figures } from "../case.ts";
import type { GrpcCallsLoad } from "../load/grpc.ts";
import type { RequestOutcome } from "../load/requests.ts";
import { costing, inTurn } from "../rounds.ts";
import { question, warmups } from "./message.ts";

/** More rounds than over HTTP/1.1: the client of grpc-js makes a fifth of the calls, and V8 optimizes after a number of calls. */
const warmupsOfCalls = 6;

export const grpcCase: Case = {
  name: "grpc",
  what: "SendMessage answered by a Message over gRPC, in memory",
  operation: "a call",
  targets: [{ measure: "cpuToRaw", says: "CPU to the echo server of grpc-js", atMost: 1.3 }],
  why: "Node's HTTP/2 is most of a call on both sides: about two thirds of ours. A head and an answer leave in one write, the trailers in a second, since Node hands them on in the turn after; so do those of grpc-js. Our layer takes 2 µs, the messages 1, and what Parley does for a message, which the echo does not, 11: with so much more code it suffers more from a machine whose caches others use, and a quick run ends before all of it is compiled ([measurements](decisions/grpc.md)).",
  async run(bench) {
    const [parley, raw, load] = await Promise.all([
      bench.server("parley"),
      bench.server("raw"),
      bench.child("load/grpc"),
    ]);
    const calling = async (server: Server): Promise<() => Promise<Figures>> => {
      const round: GrpcCallsLoad = {
        address: await server.grpc(),
        text: `reply ${question}`,
        expect: "forty-two",
        connections: 32,
        seconds: bench.size(0.6, 0.15),
      };
      return () => costing(server, () => load.ask<RequestOutcome>("calls", round));
    };
    const subjects = { parley: await calling(parley), raw: await calling(raw) };
    // No target depends on the official SDK, so a quick run leaves it out.
    const figures = bench.quick
      ? await inTurn(3, subjects, warmups)
      : await inTurn(7, { official: await calling(await bench.server("official")), ...subjects }, warmupsOfCalls);
    return {
      ...figures,
      notes: ["Raw is the server of grpc-js with protobufjs; all are called by the client of grpc-js."],
    };
  },
};

import type { Bench, Load, Server } from "../bench.ts";
import { send, type Binding } from "../calls.ts";
import type { Case, Figures } from "../case.ts";
import { costing, inTurn } from "../rounds.ts";

/** A round of load over 32 connections. Every answer has to contain `expect`. */
export function sending(bench: Bench, load: Load, server: Server, what: Sending): () => Promise<Figures> {
  const request = send(server, what.text, what.binding);
  const round = { request, expect: what.expect, connections: 32, seconds: bench.size(0.8, 0.15), most: 100_000 };
  return () => costing(server, () => load.requests(round));
}

export interface Sending {
  readonly text: string;
  readonly binding?: Binding;
  readonly expect: string;
}

/** Warm-up rounds, until V8 has optimized servers that answer a few thousand times a second. */
export const warmups = 2;

/** A text of the length of a short question to an agent. */
export const question = "and this is what somebody wants to know of an agent, in a sentence of the usual length";

async function run(bench: Bench): ReturnType<Case["run"]> {
  const [parley, official, raw, load] = await Promise.all([
    bench.server("parley"),
    bench.server("official"),
    bench.server("raw"),
    bench.load(),
  ]);
  const reply = (server: Server, binding: Binding) =>
    sending(bench, load, server, { text: `reply ${question}`, binding, expect: "forty-two" });
  const subjects = {
    parley: reply(parley, "jsonRpc"),
    official: reply(official, "jsonRpc"),
    raw: reply(raw, "jsonRpc"),
    parleyRest: reply(parley, "rest"),
    officialRest: reply(official, "rest"),
    rawRest: reply(raw, "rest"),
  };
  const figures = await inTurn(bench.size(5, 2), subjects, warmups);
  const { parleyRest, officialRest, rawRest, ...rest } = figures;
  return {
    ...rest,
    also: { "parley, REST": parleyRest, "official, REST": officialRest, "raw, REST": rawRest },
    measures: {
      restThroughputToOfficial: (parleyRest.throughput ?? 0) / (officialRest.throughput ?? 0),
      restCpuToRaw: (parleyRest.cpu ?? 0) / (rawRest.cpu ?? 0),
    },
  };
}

export const messageCase: Case = {
  name: "message",
  what: "SendMessage answered by a Message, in memory",
  operation: "a message",
  targets: [
    { measure: "cpuToRaw", says: "CPU to raw, JSON-RPC", atMost: 1.6 },
    { measure: "restCpuToRaw", says: "CPU to raw, REST", atMost: 1.6 },
    { measure: "throughputToOfficial", says: "throughput to official, JSON-RPC", atLeast: 5 },
    { measure: "restThroughputToOfficial", says: "throughput to official, REST", atLeast: 5 },
  ],
  why: "Writing to the socket is half of it, as it is of the bare server; the rest is spread thin: the bounded memory that makes a retry safe (a tenth), garbage and its threads (an eighth), the check of the message, its hash, an id or two, two awaits in the bindings and an async generator. Answers of one turn of the event loop leave together, which took off a third; objects that are spread and then added to, and maps whose entries come and go, took off half of what was left ([measurements](decisions/hot-path.md)). With `dedupe: false` it is 4 µs less. Neither a faster hash nor fewer checks would change a tenth.",
  run,
};

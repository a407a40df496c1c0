import type { Bench, Load, Server } from "../bench.ts";
import { send, type Binding } from "../calls.ts";
import { defined, ratio, type Case } from "../case.ts";
import type { Request } from "../load/http.ts";
import { costing, inTurn, type Subject } from "../rounds.ts";

/** Load over 32 connections. Every response must contain `expect`. */
export function requesting(bench: Bench, load: Load, server: Server, request: Request, expect: string): Subject {
  const all = { request, expect, connections: 32 };
  return {
    warmUp: () => load.requests({ ...all, ...bench.warmUp }),
    measure: () => costing(server, () => load.requests({ ...all, seconds: bench.size(0.8, 0.15), most: 100_000 })),
  };
}

export function sending(bench: Bench, load: Load, server: Server, { text, binding, expect }: Sending): Subject {
  return requesting(bench, load, server, send(server, text, binding), expect);
}

export interface Sending {
  readonly text: string;
  readonly binding?: Binding;
  readonly expect: string;
}

/** A text with the length of a short question to an agent. */
export const question = "and this is what somebody wants to know of an agent, in a sentence of the usual length";

async function run(bench: Bench): ReturnType<Case["run"]> {
  const [parley, official, raw, load] = await Promise.all([
    bench.server("parley"),
    bench.server("official"),
    bench.server("raw"),
    bench.load(),
  ]);
  const extended = await bench.server("parley", "memory", [], ["extensions"]);
  // A separate server, so that the bare server does not spend time on garbage collection of the replies that this one remembers.
  const safe = await bench.server("raw");
  const checked = { ...safe, jsonRpc: `${safe.jsonRpc}/checked`, rest: `${safe.rest}/checked` };
  const reply = (server: Server, binding: Binding) =>
    sending(bench, load, server, { text: `reply ${question}`, binding, expect: "forty-two" });
  const subjects = {
    parley: reply(parley, "jsonRpc"),
    extended: reply(extended, "jsonRpc"),
    official: reply(official, "jsonRpc"),
    raw: reply(raw, "jsonRpc"),
    checked: reply(checked, "jsonRpc"),
    parleyRest: reply(parley, "rest"),
    extendedRest: reply(extended, "rest"),
    officialRest: reply(official, "rest"),
    rawRest: reply(raw, "rest"),
    checkedRest: reply(checked, "rest"),
  };
  const figures = await inTurn(bench.size(7, 2), subjects);
  const { parleyRest, extendedRest, officialRest, rawRest, checkedRest, ...rest } = figures;
  return {
    parley: rest.parley,
    official: rest.official,
    raw: rest.raw,
    also: {
      "parley, ten extensions": rest.extended,
      "raw, checked and remembered": rest.checked,
      "parley, REST": parleyRest,
      "parley, REST, ten extensions": extendedRest,
      "official, REST": officialRest,
      "raw, REST": rawRest,
      "raw, REST, checked and remembered": checkedRest,
    },
    measures: defined({
      restThroughputToOfficial: ratio(parleyRest.throughput, officialRest.throughput),
      restThroughputToRaw: ratio(parleyRest.throughput, rawRest.throughput),
      restCpuToRaw: ratio(parleyRest.cpu, rawRest.cpu),
      cpuOfExtensions: ratio(rest.extended.cpu, rest.parley.cpu),
      restCpuOfExtensions: ratio(extendedRest.cpu, parleyRest.cpu),
      cpuToChecked: ratio(rest.parley.cpu, rest.checked.cpu),
      restCpuToChecked: ratio(parleyRest.cpu, checkedRest.cpu),
    }),
    notes: [
      "The rows with ten extensions are a server with ten extensions, each with all hooks, metadata and data parts, which no caller requests.",
      "The rows checked and remembered are the bare server with the work that makes a message safe: it checks the message against the schema, hashes it, makes two ids, and remembers the last 10,000 replies for a retry.",
    ],
  };
}

export const messageCase: Case = {
  name: "message",
  what: "SendMessage answered by a Message, in memory",
  operation: "a message",
  targets: [
    { measure: "cpuToRaw", says: "CPU to raw, JSON-RPC", atMost: 1.5 },
    { measure: "restCpuToRaw", says: "CPU to raw, REST", atMost: 1.5 },
    { measure: "cpuOfExtensions", says: "CPU with ten extensions that nobody asks for, JSON-RPC", atMost: 1.02 },
    { measure: "restCpuOfExtensions", says: "CPU with ten extensions that nobody asks for, REST", atMost: 1.02 },
    { measure: "throughputToRaw", says: "throughput to raw, JSON-RPC", atLeast: 0.75 },
    { measure: "restThroughputToRaw", says: "throughput to raw, REST", atLeast: 0.75 },
    { measure: "throughputToOfficial", says: "throughput to official, JSON-RPC", atLeast: 5 },
    { measure: "restThroughputToOfficial", says: "throughput to official, REST", atLeast: 5 },
  ],
  why: "The write to the socket is half of the time, as it is for the raw server. The rows that are checked and remembered show what a bare server needs for a safe message. The other work of Parley is spread over many functions: routing, the limits of bodies, the run of the agent, and the memory of conversations. Garbage collection is a tenth: every reply is kept for its retry, and the collector copies it twice. [Hot path](decisions/hot-path.md) has the measurements.",
  run,
};

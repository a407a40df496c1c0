import type { Bench } from "../bench.ts";
import { send } from "../calls.ts";
import { defined, ratio, type Case } from "../case.ts";
import { inTurn } from "../rounds.ts";
import { question, requesting, sending } from "./message.ts";

async function run(bench: Bench): ReturnType<Case["run"]> {
  const [open, guarded, load] = await Promise.all([bench.server("parley"), bench.server("auth"), bench.load()]);
  const authorization = `Bearer ${await guarded.token()}`;
  const text = `reply ${question}`;
  const expect = "forty-two";
  const known = (binding: "jsonRpc" | "rest") =>
    requesting(bench, load, guarded, { ...send(guarded, text, binding), headers: { authorization } }, expect);
  const { jwt, jwtRest, none, noneRest } = await inTurn(bench.size(7, 2), {
    jwt: known("jsonRpc"),
    none: sending(bench, load, open, { text, binding: "jsonRpc", expect }),
    jwtRest: known("rest"),
    noneRest: sending(bench, load, open, { text, binding: "rest", expect }),
  });
  return {
    parley: jwt,
    also: { "parley, no authentication": none, "parley, REST": jwtRest, "parley, REST, no authentication": noneRest },
    measures: defined({
      cpuToOpen: ratio(jwt.cpu, none.cpu),
      restCpuToOpen: ratio(jwtRest.cpu, noneRest.cpu),
    }),
    notes: ["All messages have the same token, like a client's until it expires. It is verified once."],
  };
}

export const authCase: Case = {
  name: "auth",
  what: "SendMessage with a JWT in Authorization, answered by a Message, in memory",
  operation: "a message",
  targets: [
    { measure: "cpuToOpen", says: "CPU to a message without authentication, JSON-RPC", atMost: 1.3 },
    { measure: "restCpuToOpen", says: "CPU to a message without authentication, REST", atMost: 1.3 },
  ],
  why: "Verified tokens are cached by their digest.",
  run,
};

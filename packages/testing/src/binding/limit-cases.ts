import type { ContractCases } from "./given.ts";
import { errorOf, saying, textsOf } from "./given.ts";

/** Sizes, which are checked before any work. */
export const limitCases: ContractCases = {
  "a request beyond the limit is refused, and one below it is not": async ({ serve, expect }) => {
    const served = await serve({ options: { limits: { bodyBytes: 20_000 } } });
    const refused = await errorOf(served.call("SendMessage", saying(`reply ${"x".repeat(30_000)}`)));
    expect(refused.code).toEqual("RequestTooLarge");
    const { message } = await served.call("SendMessage", saying(`reply ${"x".repeat(10_000)}`));
    expect(message?.parts[0]?.text?.length).toEqual(10_000 + "Obedient: reply ".length);
  },

  "a request that is nested too deep is refused": async ({ serve, expect }) => {
    const served = await serve({ options: { limits: { depth: 20 } } });
    let data: object = {};
    for (let depth = 0; depth < 30; depth++) data = { data };
    const refused = await errorOf(served.call("SendMessage", saying("", { parts: [{ text: "reply" }, { data }] })));
    expect(["InvalidRequest", "InvalidParams", "ParseError"].includes(refused.code)).toEqual(true);
  },

  "a large answer arrives whole": async ({ serve, expect }) => {
    const { task } = await (await serve()).call("SendMessage", saying("large 600000"));
    expect(textsOf(task ?? {}).map((text) => text?.length)).toEqual([600_000]);
  },

  "an answer beyond the client's limit is given up": async ({ serve, expect }) => {
    const served = await serve({ limits: { maxResponseBytes: 10_000, maxEventBytes: 10_000 } });
    expect((await errorOf(served.call("SendMessage", saying("large 60000")))).code).toEqual("InvalidResponse");
  },
};

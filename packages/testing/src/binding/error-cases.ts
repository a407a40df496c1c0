import { A2AError, invalidParams, wireErrorCodes, type WireErrorCode } from "@parley/a2a/internal/model/index";
import type { Interceptor } from "@parley/a2a/internal/protocol/index";
import { before, errorOf, saying, type ContractCases } from "./given.ts";

/** Throws what a message names: `error TaskNotFound`. */
const throwing: Interceptor = before((operation, _, request) => {
  const { message } = request as { message?: { parts: readonly { text?: string }[] } };
  const [what, code] = message?.parts[0]?.text?.split(" ") ?? [];
  if (what !== "error") return;
  if (code === "unknown") throw new TypeError("the password is secret");
  if (code === "InvalidParams") throw invalidParams([{ field: "message.parts[0]", description: "is not to my taste" }]);
  throw new A2AError(code as WireErrorCode, `Why it went wrong (${operation})`, {
    ...(code === "Unavailable" && { retryAfter: 7 }),
  });
});

/** Errors of calls and of streams (A2A 1.0 §3.3.2). */
export const errorCases: ContractCases = {
  "every error arrives under its own name, with its sentence": async ({ serve, expect }) => {
    const served = await serve({ options: { interceptors: [throwing] } });
    // What a version has no name for comes under the name that is nearest.
    const codes = wireErrorCodes.filter((code) => served.version >= "1" || known03.has(code));
    for (const code of codes) {
      const error = await errorOf(served.call("SendMessage", saying(`error ${code}`)));
      expect(error.code).toEqual(code);
      // Some peers look for the name of an error before its sentence.
      if (code !== "InvalidParams") expect(error.message.endsWith("Why it went wrong (SendMessage)")).toEqual(true);
      const streamed = await errorOf(served.stream("SendStreamingMessage", saying(`error ${code}`)));
      expect(streamed.code).toEqual(code);
    }
  },

  "what is thrown beside the protocol is an internal error, and says nothing of itself": async ({ serve, expect }) => {
    const served = await serve({ options: { interceptors: [throwing] } });
    const error = await errorOf(served.call("SendMessage", saying("error unknown")));
    expect([error.code, error.message.includes("secret")]).toEqual(["InternalError", false]);
  },

  "a request that breaks the schema is refused with its fields": async ({ serve, expect }) => {
    const served = await serve();
    const error = await errorOf(served.call("SendMessage", saying("", { parts: [] })));
    expect(error.code).toEqual("InvalidParams");
    // One version has another name for it.
    expect(error.fields.map(({ field }) => field.replace("content", "parts"))).toEqual(["message.parts"]);
  },
};

/** For versions that carry what is wrong beside the sentence (A2A 1.0 §9.5, §10.6, §11.6). */
export const detailCases: ContractCases = {
  "the fields of an error arrive, and when to come back": async ({ serve, expect }) => {
    const served = await serve({ options: { interceptors: [throwing] } });
    const wrong = await errorOf(served.call("SendMessage", saying("error InvalidParams")));
    expect(wrong.fields).toEqual([{ field: "message.parts[0]", description: "is not to my taste" }]);
    expect((await errorOf(served.call("SendMessage", saying("error Unavailable")))).retryAfter).toEqual(7);
  },
};

/** The errors that 0.3 has words for on every binding. */
const known03: ReadonlySet<string> = new Set([
  "TaskNotFound",
  "TaskNotCancelable",
  "PushNotificationNotSupported",
  "UnsupportedOperation",
  "InvalidParams",
  "Unauthenticated",
  "PermissionDenied",
]);

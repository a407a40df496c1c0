import type { Logger } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { JsonRpcCodec, RestCodec, Shapes } from "../wire/codec.ts";

/** Servers whose card says 1.0, and whose events have the `kind` of 0.3 in place of the member that wraps them, such as LangGraph's 0.16. */

const members: Readonly<Record<string, string>> = {
  task: "task",
  message: "message",
  "status-update": "statusUpdate",
  "artifact-update": "artifactUpdate",
};

/** The member that wraps an event, by its `kind`. `undefined`: the event is wrapped, or nothing that is known. */
function memberFor(value: unknown): string | undefined {
  if (!isObject(value) || typeof value["kind"] !== "string") return undefined;
  return Object.hasOwn(members, value["kind"]) ? members[value["kind"]] : undefined;
}

/** The codec of 1.0, which wraps events by their `kind`. `logger` gets one warning. */
export function wrappingByKind<Version extends JsonRpcCodec & RestCodec>(
  codec: Version,
  logger: Logger | undefined,
): Version {
  if (codec.version < "1") return codec;
  let isTold = false;
  const wrapped = <T>(value: unknown, decode: (value: unknown) => T): T => {
    const member = memberFor(value);
    if (member === undefined) return decode(value);
    try {
      const event = decode({ [member]: value });
      if (!isTold)
        logger?.warn("The server sends events of 1.0 without their wrapper; reading them by their kind", { member });
      isTold = true;
      return event;
    } catch (thrown) {
      if (!(thrown instanceof A2AError)) throw thrown;
      const hint = 'it looks like an event of 0.3: try connect(url, { version: "0.2.5" })';
      throw new A2AError(thrown.code, `${thrown.message}; ${hint}`, { cause: thrown });
    }
  };
  const reading = <Wire extends Pick<Shapes, "decodeResponse" | "decodeEvent">>(wire: Wire): Wire => {
    const decodeResponse: Shapes["decodeResponse"] = (operation, value) =>
      operation === "SendMessage"
        ? wrapped(value, (each) => wire.decodeResponse(operation, each))
        : wire.decodeResponse(operation, value);
    return {
      ...wire,
      decodeResponse,
      decodeEvent: (value: unknown) => wrapped(value, (each) => wire.decodeEvent(each)),
    };
  };
  const { bindings } = codec;
  const both = { JSONRPC: reading(bindings.JSONRPC), "HTTP+JSON": reading(bindings["HTTP+JSON"]) };
  return { ...codec, bindings: { ...bindings, ...both } };
}

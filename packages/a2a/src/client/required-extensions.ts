import { A2AError, type AgentCard, hasCode } from "../model/index.ts";
import type { AgentService, AnyExtension } from "../protocol/index.ts";

/**
 * Says which extensions an agent requires where it has refused a call for them (A2A 1.0 §4.6.1). The server decides: the card may be out
 * of date, and some operations need no extension. Returns the service itself where the client asks for all that the card requires.
 *
 * @param requested - URIs that the client asks for.
 */
export function explainingRequired(next: AgentService, card: AgentCard, requested: readonly string[]): AgentService {
  const missing = (card.capabilities.extensions ?? []).flatMap(({ uri, required }) =>
    required === true && uri !== undefined && !requested.includes(uri) ? [uri] : [],
  );
  if (missing.length === 0) return next;
  const explained = (thrown: unknown): never => {
    if (!hasCode(thrown, "ExtensionSupportRequired")) throw thrown;
    const { message, fields, metadata } = thrown;
    const text = `${message}. The card requires ${missing.join(", ")}: connect(url, { extensions: [...] }) asks for them`;
    throw new A2AError("ExtensionSupportRequired", text, { fields, metadata, cause: thrown });
  };
  return {
    call: (operation, request, context) => next.call(operation, request, context).catch(explained),
    stream: (operation, request, context) => next.stream(operation, request, context).catch(explained),
  };
}

/** `client.ext()` for an extension that the client does not have. */
export function notConnectedWith({ uri }: AnyExtension): never {
  throw new TypeError(
    `The client was connected without the extension ${uri}, or with its URI alone: name its value in connect(url, { extensions: [...] })`,
  );
}

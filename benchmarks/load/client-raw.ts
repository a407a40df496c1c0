import { answerParent } from "../ipc.ts";
import { measured, type ClientLoad, type ClientOutcome } from "./client.ts";

// The lower bounds: reading the bytes of fetch, and additionally splitting them into lines and parsing JSON, without any checks.

interface Event {
  readonly result: {
    readonly artifactUpdate?: { readonly artifact: { readonly parts: readonly [{ readonly text: string }] } };
  };
}

async function* pieces({ url, text }: ClientLoad): AsyncGenerator<Uint8Array, void, void> {
  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendStreamingMessage", params: { message } });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  if (response.body !== null) yield* response.body;
}

async function* events(load: ClientLoad): AsyncGenerator<Event, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of pieces(load)) {
    const text = rest + decoder.decode(piece, { stream: true });
    let start = 0;
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n", start)) {
      yield JSON.parse(text.slice(start + "data: ".length, end)) as Event;
      start = end + 2;
    }
    rest = text.slice(start);
  }
}

answerParent({
  read: (load: ClientLoad): Promise<ClientOutcome> =>
    measured(events(load), ({ result }) => result.artifactUpdate?.artifact.parts[0].text),
  /** Its operations are chunks of bytes, as fetch delivers them. */
  bytes: (load: ClientLoad): Promise<ClientOutcome> => measured(pieces(load), () => undefined),
});

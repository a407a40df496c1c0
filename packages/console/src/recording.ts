import type { FetchInit, FetchLike } from "@parley/a2a/internal/client/index";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import type { Interceptor } from "@parley/a2a/internal/protocol/index";
import type { CapturedBody, HeaderList } from "./api.ts";
import type { NewRecord } from "./wire-log.ts";

/* Sends requests and records them in the wire log. Runs in the console's process and in browsers. */

/** Receives records. */
export interface Recorder {
  /** Returns the number of the next request. */
  nextExchange(): number;
  add(record: NewRecord): void;
}

/** Maximum characters of a body in the log. */
const maxText = 1 << 20;

/** Headers with secret values, in addition to those that the schemes of a card name. */
const secretHeaders = /^(?:authorization|proxy-authorization|cookie|set-cookie|dpop)$|api-?key|token|secret|password/;

/** Query parameters with secret values, in addition to those that the schemes of a card name. A2A's `pageToken` is not secret. */
const secretParameters =
  /^(?:key|code|sig|signature|auth|(?:access|auth|id|refresh)?_?token)$|api[-_]?key|secret|password/i;

/** Names of headers and parameters whose values are secrets. */
export interface Secrets {
  /** Additional header names, in lower case, such as the API keys of a card. */
  readonly headers?: ReadonlySet<string>;
  /** Names of query parameters. */
  readonly parameters?: ReadonlySet<string>;
}

/** The secrets of an agent: headers that the user entered, and the API keys that the card names. */
export function secretsOf(headers: Readonly<Record<string, string>>, card?: AgentCard): Secrets {
  const keys = Object.values(card?.securitySchemes ?? {}).flatMap(({ apiKeySecurityScheme: key }) => key ?? []);
  const named = (location: string): string[] => keys.flatMap((key) => (key.location === location ? [key.name] : []));
  return {
    headers: new Set([...Object.keys(headers), ...named("header")].map((name) => name.toLowerCase())),
    parameters: new Set(named("query")),
  };
}

/** A `fetch` that logs requests and responses with secrets masked. Calls `secrets` for each request. */
export function recordingFetch(log: Recorder, agent: string, fetch: FetchLike, secrets: () => Secrets): FetchLike {
  return async (url, init) => {
    const exchange = log.nextExchange();
    const hidden = secrets();
    log.add({ kind: "request", exchange, agent, ...requestOf(url, init, hidden) });
    try {
      const response = await fetch(url, init);
      const headers = masked([...response.headers], hidden);
      log.add({ kind: "response", exchange, status: response.status, headers });
      return withBody(response, new BodyRecorder(log, exchange, response), init.signal);
    } catch (thrown) {
      // An abort by the caller is not a failure.
      log.add({ kind: "end", exchange, ...(!init.signal.aborted && { error: messageOf(thrown) }) });
      throw thrown;
    }
  };
}

function requestOf(url: string, { method, headers, body }: FetchInit, hidden: Secrets) {
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const bytes = typeof body === "string" ? sizeOf(body) : (body?.byteLength ?? 0);
  return {
    method,
    url: maskedUrl(url, hidden),
    headers: masked(Object.entries(headers), hidden),
    body: captured(text, bytes),
  };
}

/** Returns the response with a body that is recorded while it is read. */
function withBody(response: Response, recorder: BodyRecorder, signal: AbortSignal): Response {
  const { status, statusText, headers, url, redirected } = response;
  if (response.body === null) {
    recorder.end();
    return response;
  }
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (value !== undefined) {
            recorder.push(value);
            controller.enqueue(value);
          }
          if (!done) return;
          recorder.end();
          controller.close();
        } catch (thrown) {
          recorder.end(signal.aborted ? undefined : messageOf(thrown));
          controller.error(thrown);
        }
      },
      async cancel(reason) {
        recorder.end();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  const copy = new Response(body, { status, statusText, headers });
  Object.defineProperties(copy, { url: { value: url }, redirected: { value: redirected } });
  return copy;
}

/** The blank line after an event. */
const eventEnd = /\r?\n\r?\n|\r\r/g;

/** Records the body of a response: one record for each event of a stream, one for any other body. */
class BodyRecorder {
  readonly #log: Recorder;
  readonly #exchange: number;
  readonly #isStream: boolean;
  readonly #decoder = new TextDecoder();
  #text = "";
  #bytes = 0;

  constructor(log: Recorder, exchange: number, { headers }: Response) {
    this.#log = log;
    this.#exchange = exchange;
    this.#isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
  }

  push(piece: Uint8Array): void {
    this.#bytes += piece.byteLength;
    const text = this.#decoder.decode(piece, { stream: true });
    if (!this.#isStream) {
      // Keeps at least one character more than the maximum, to show that the text must be truncated.
      if (this.#text.length <= maxText) this.#text += text;
      return;
    }
    // The separator after an event may begin in the last three characters of the previous text.
    let from = Math.max(0, this.#text.length - 3);
    this.#text += text;
    for (;;) {
      eventEnd.lastIndex = from;
      if (!eventEnd.test(this.#text)) break;
      const event = this.#text.slice(0, eventEnd.lastIndex);
      this.#text = this.#text.slice(eventEnd.lastIndex);
      from = 0;
      this.#add(event, sizeOf(event));
    }
    if (this.#text.length > maxText) this.#flush();
  }

  end(error?: string): void {
    if (this.#text !== "") this.#flush();
    this.#log.add({ kind: "end", exchange: this.#exchange, ...(error !== undefined && { error }) });
  }

  #flush(): void {
    this.#add(this.#text, this.#isStream ? sizeOf(this.#text) : this.#bytes);
    this.#text = "";
  }

  #add(text: string, bytes: number): void {
    this.#log.add({ kind: "piece", exchange: this.#exchange, body: captured(text, bytes) });
  }
}

/** Records calls that do not use `fetch`, such as gRPC calls, as JSON of A2A 1.0. */
export function recordingCalls(log: Recorder, agent: string, target: () => { readonly url: string }): Interceptor {
  const begin = (operation: string, request: unknown): number => {
    const exchange = log.nextExchange();
    const text = JSON.stringify(request) ?? "";
    const body = captured(text, sizeOf(text));
    log.add({ kind: "request", exchange, agent, method: operation, url: target().url, headers: [], body, operation });
    return exchange;
  };
  const piece = (exchange: number, json: string): void =>
    log.add({ kind: "piece", exchange, body: captured(json, sizeOf(json)) });
  const failed = (exchange: number, thrown: unknown): void =>
    log.add({ kind: "end", exchange, error: messageOf(thrown) });
  return (next) => ({
    async call(operation, request, context) {
      const exchange = begin(operation, request);
      try {
        const reply = await next.call(operation, request, context);
        piece(exchange, reply.payload.json);
        log.add({ kind: "end", exchange });
        return reply;
      } catch (thrown) {
        failed(exchange, thrown);
        throw thrown;
      }
    },
    async stream(operation, request, context) {
      const exchange = begin(operation, request);
      try {
        const reply = await next.stream(operation, request, context);
        return { ...reply, batches: seen(reply.batches) };
      } catch (thrown) {
        failed(exchange, thrown);
        throw thrown;
      }
      async function* seen<Item extends { readonly payload: { readonly json: string } }>(
        batches: AsyncIterable<readonly Item[]>,
      ): AsyncGenerator<readonly Item[], void, void> {
        let error: string | undefined;
        try {
          for await (const batch of batches) {
            for (const { payload } of batch) piece(exchange, payload.json);
            yield batch;
          }
        } catch (thrown) {
          error = messageOf(thrown);
          throw thrown;
        } finally {
          // If the reader stops early, the exchange also ends.
          log.add({ kind: "end", exchange, ...(error !== undefined && { error }) });
        }
      }
    },
  });
}

/** Headers with secrets masked. */
export function masked(headers: HeaderList, { headers: names }: Secrets): HeaderList {
  return headers.map(([name, value]) => {
    const isSecret = secretHeaders.test(name.toLowerCase()) || names?.has(name.toLowerCase()) === true;
    return [name, isSecret ? mask(value) : value] as const;
  });
}

/** Keeps the scheme of `Authorization`, because it is not secret, and is often the mistake. */
function mask(value: string): string {
  const [, scheme] = /^(\w+) \S/.exec(value) ?? [];
  return scheme === undefined ? "•••" : `${scheme} •••`;
}

function maskedUrl(url: string, { parameters }: Secrets): string {
  if (!URL.canParse(url)) return url;
  const parsed = new URL(url);
  const names = new Set(parsed.searchParams.keys());
  const secret = [...names].filter((name) => parameters?.has(name) === true || secretParameters.test(name));
  if (secret.length === 0 && parsed.username === "" && parsed.password === "") return url;
  for (const name of secret) parsed.searchParams.set(name, "•••");
  parsed.username = parsed.password = "";
  return parsed.href;
}

/** A body for the log. */
export function captured(text: string, bytes: number): CapturedBody {
  if (text.length <= maxText) return { bytes, text };
  // A slice of a string keeps the whole string in memory, so this decodes a copy.
  return { bytes, text: new TextDecoder().decode(encoder.encode(text.slice(0, maxText))), isCut: true };
}

const encoder = new TextEncoder();

/** UTF-8 length of a text, in bytes. */
function sizeOf(text: string): number {
  return encoder.encode(text).length;
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

import { deferred } from "@parley/a2a/internal/base/index";
import type { Deferred } from "@parley/a2a/internal/base/async";
import { apiKey, type Authenticator } from "@parley/a2a/internal/auth/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import { Payload, type AgentService, type CallContext, type StreamItem } from "@parley/a2a/internal/protocol/index";
import type { HostedService, HostOptions } from "@parley/server/internal/server/options";
import type { Mounts } from "@parley/server/internal/server/port";
import { textIn } from "../binding/given.ts";
import type { Expect } from "../runner.ts";

/* Helpers for the cases of the host contracts. */

/** Host options of a case. */
export type ContractHostOptions = Pick<
  HostOptions,
  "allowedHosts" | "authenticator" | "cors" | "health" | "limits" | "routes"
>;

/** A running host. */
export interface ContractHost {
  /** Its public URL. */
  readonly url: string;
  /** The agents that it serves. */
  readonly mounts: Mounts;
  /** Sends HTTP requests to it. Default: the runtime's `fetch`. */
  readonly fetch?: (url: string, init?: RequestInit) => Promise<Response>;
  /** Stops it. */
  close(options?: { readonly grace?: number }): Promise<void>;
}

export interface HostGiven {
  readonly expect: Expect;
  /** Serves services for the duration of the case. */
  serve(mounts: readonly HostedService[], options?: ContractHostOptions): Promise<ServedHost>;
}

export type HostCases = Readonly<Record<string, (given: HostGiven) => Promise<void>>>;

/** A host, with requests to it. */
export class ServedHost {
  readonly mounts: Mounts;
  readonly url: string;
  readonly #host: ContractHost;

  constructor(host: ContractHost) {
    this.#host = host;
    this.url = host.url;
    this.mounts = host.mounts;
  }

  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return (this.#host.fetch ?? fetch)(this.url + path, init);
  }

  close(options?: { readonly grace?: number }): Promise<void> {
    return this.#host.close(options);
  }

  /** Status and text of an answer. */
  async get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<readonly [number, string]> {
    const answer = await this.fetch(path, { headers });
    return [answer.status, await answer.text()];
  }

  /** Sends a message over REST to the agent at a path. */
  say(path: string, text: string, more: Sending = {}): Promise<Response> {
    const { operation = "message:send", headers = {}, signal } = more;
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] };
    return this.fetch(`${path}/${operation}`, {
      method: "POST",
      headers: { "content-type": "application/json", "a2a-version": "1.0", ...headers },
      body: JSON.stringify({ message }),
      ...(signal !== undefined && { signal }),
    });
  }

  /** The reply of the agent at a path, or the status of an error. */
  async reply(path: string, text = "hello", headers: Readonly<Record<string, string>> = {}): Promise<string | number> {
    const answer = await this.say(path, text, { headers });
    const { message } = (await answer.json()) as { message?: { parts: { text: string }[] } };
    return message?.parts[0]?.text ?? answer.status;
  }

  /** The name on the card at a path, or the status if there is no card. */
  async card(path: string): Promise<string | number> {
    const answer = await this.fetch(`${path}/.well-known/agent-card.json`);
    const { name } = (await answer.json()) as { name?: string };
    return name ?? answer.status;
  }

  /** Opens a stream, and reads its first event. */
  async stream(path: string, headers: Readonly<Record<string, string>> = {}): Promise<OpenStream> {
    const answer = await this.say(path, "stream", { operation: "message:stream", headers });
    const stream = new OpenStream(answer);
    await stream.until("first");
    return stream;
  }
}

interface Sending {
  readonly operation?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** An open stream of events. */
export class OpenStream {
  text = "";
  readonly #reader: ReadableStreamDefaultReader<string>;

  constructor(answer: Response) {
    if (answer.body === null) throw new Error(`No stream: ${answer.status}`);
    this.#reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** Reads until the text contains `part`. Throws if the stream ends first. */
  async until(part: string): Promise<void> {
    while (!this.text.includes(part)) {
      const { done, value } = await this.#reader.read();
      if (done) throw new Error(`The stream ended before ${part}: ${this.text}`);
      this.text += value;
    }
  }

  /** Reads to the end, even if the stream fails. */
  async end(): Promise<string> {
    for (;;) {
      const next = await this.#reader.read().catch(() => ({ done: true, value: undefined }) as const);
      if (next.done) return this.text;
      this.text += next.value;
    }
  }

  leave(): Promise<void> {
    return this.#reader.cancel();
  }
}

/** A service that answers with its name, the text and the caller. `stream` sends `first` and, once `open` is called, `last`. */
export interface Talker extends HostedService {
  /** Ends the streams, and answers the calls with the text `wait`. */
  open(): void;
  /** Resolves when a client has closed a stream. */
  readonly left: Promise<void>;
}

/** Creates a service at a path. */
export function talker(name: string, mount: Omit<Partial<HostedService>, "service" | "card"> = {}): Talker {
  const gate = deferred<void>();
  const left = deferred<void>();
  const card = { name, description: `Says that it is ${name}.`, version: "1.0.0", skills: [] };
  return { ...mount, card, service: serviceOf(name, gate, left), open: () => gate.resolve(), left: left.promise };
}

/** The mount without the members of a talker that a host would reject as unknown options. */
export function mountOf({ open: _, left: __, ...mount }: Talker): HostedService {
  return mount;
}

function serviceOf(name: string, gate: Deferred<void>, left: Deferred<void>): AgentService {
  const messageOf = (text: string) => ({
    messageId: crypto.randomUUID(),
    role: "ROLE_AGENT" as const,
    parts: [{ text }],
  });
  const service: Pick<AgentService, "stream"> & {
    call(operation: string, request: object, context: CallContext): Promise<{ payload: Payload<never> }>;
  } = {
    async call(operation, request, { principal }) {
      if (operation !== "SendMessage") throw new A2AError("TaskNotFound");
      const text = textIn(request);
      if (text === "fail") throw new Error("MARK-of-a-secret");
      if (text === "wait") await gate.promise;
      return { payload: new Payload({ message: messageOf(`${name}: ${text} (${principal.subject})`) } as never) };
    },
    async stream() {
      const item = (text: string): readonly StreamItem[] => [{ payload: new Payload({ message: messageOf(text) }) }];
      const batches = (async function* () {
        try {
          yield item(`first of ${name}`);
          await gate.promise;
          yield item(`last of ${name}`);
        } finally {
          left.resolve();
        }
      })();
      const leave = async (): Promise<IteratorResult<never, void>> => {
        left.resolve();
        gate.resolve();
        await batches.return();
        return { done: true, value: undefined };
      };
      return { batches: { [Symbol.asyncIterator]: () => ({ next: () => batches.next(), return: leave }) } };
    },
  };
  return service;
}

export const known: Readonly<Record<string, string>> = { "x-key": "the-key-of-ada" };

/** Authenticates Ada by an API key. */
export const onlyAda = (): Authenticator => apiKey({ "the-key-of-ada": { subject: "ada" } }, { header: "x-key" });

/** The code of the error that a function throws; `undefined` if it throws none. */
export function codeOf(run: () => unknown): string | undefined {
  try {
    run();
    return undefined;
  } catch (thrown) {
    return thrown instanceof A2AError ? thrown.code : String(thrown);
  }
}

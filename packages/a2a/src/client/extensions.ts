import type { Clock, Logger } from "../base/index.ts";
import {
  A2AError,
  type AgentCard,
  type FieldViolation,
  invalidParams,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
} from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import {
  type AgentService,
  type AnyExtension,
  type CallContext,
  type EventReads,
  type ExtensionTypes,
  isMethod,
  mapItems,
  type OperationName,
  type Operations,
  Payload,
  type Reply,
  type RequestingCall,
  type StreamName,
  type UnaryName,
  isSend,
} from "../protocol/index.ts";
import {
  checkedRequest,
  copyFor,
  type ExtensionReader,
  inTime,
  isPromise,
  paramsOf,
  requestedFrom,
  misfitsOfInput,
} from "../extensions/index.ts";
import { onAbort } from "../transport/client/signals.ts";
import { activatedIn, give, readingBatches, readWhenAsked } from "./received.ts";

interface Hooks {
  onRequest?(request: object, call: RequestingCall): unknown;
  onEvent?(event: StreamResponse, reads: EventReads<ExtensionTypes>): unknown;
}

/**
 * The extensions of a client, as two layers around its service. `tagged` is below the retries, and records the extensions that each connection
 * has activated. `wrapped` is above the retries, and runs the hooks once per call, and once per event that the caller gets.
 */
export class ClientExtensions {
  readonly #readers: readonly ExtensionReader[];
  readonly #logger: Logger;
  /** The extensions that were active in the call of an event, an answer or a task. */
  readonly #active = new WeakMap<object, readonly ExtensionReader[]>();
  #card: AgentCard;
  /** URIs that each call requests. */
  #uris: readonly string[] = [];
  /** The checked `params` of the card, by URI. */
  #params: ReadonlyMap<string, unknown> = new Map();

  /** @param card - The card of the agent. */
  constructor(readers: readonly ExtensionReader[], card: AgentCard, logger: Logger) {
    this.#readers = readers;
    this.#logger = logger;
    this.#card = card;
    this.#use(card);
  }

  /** The last card that was read: the public card or the extended card. */
  get card(): AgentCard {
    return this.#card;
  }

  /** URIs that each call requests. */
  get uris(): readonly string[] {
    return this.#uris;
  }

  /** The checked `params` of an extension on the card. */
  paramsOf(extension: AnyExtension): unknown {
    return this.#params.get(extension.uri);
  }

  #use(card: AgentCard): void {
    this.#card = card;
    const extensions = this.#readers.map(({ extension }) => extension);
    this.#uris = requestedFrom(extensions, card, this.#logger);
    this.#params = new Map(extensions.map((each) => [each.uri, paramsOf(each, card, this.#logger)]));
  }

  /** Records the extensions of each answer, because the connections of a resumed stream may activate different extensions. */
  tagged(next: AgentService): AgentService {
    const note = (value: unknown, readers: readonly ExtensionReader[]): void => {
      // A method of an extension may return any value, which is checked later.
      if (readers.length > 0 && isObject(value)) this.#active.set(value, readers);
    };
    return {
      call: async <Name extends UnaryName>(...asked: Parameters<typeof next.call<Name>>) => {
        const reply = await next.call(...asked);
        note(reply.payload.value, this.#activated(reply.extensions, asked[2]));
        return reply;
      },
      stream: async (operation, request, context) => {
        const reply = await next.stream(operation, request, context);
        const readers = this.#activated(reply.extensions, context);
        if (readers.length === 0) return reply;
        const batches = mapItems(reply.batches, (item) => {
          note(item.payload.value, readers);
          return item;
        });
        return { ...reply, batches };
      },
    };
  }

  /** Requests the extensions, runs their hooks, and adds `ext` to answers and events. */
  wrapped(next: AgentService, clock: Clock): AgentService {
    return {
      call: async <Name extends UnaryName>(
        operation: Name,
        request: Operations[Name]["request"],
        context: CallContext,
      ) => {
        const asking = this.#asking(context);
        const reply = await next.call(operation, await this.#request(operation, request, asking, clock), asking);
        return this.#answer(operation, reply);
      },
      stream: async <Name extends StreamName>(
        operation: Name,
        request: Operations[Name]["request"],
        context: CallContext,
      ) => {
        const asking = this.#asking(context);
        const reply = await next.stream(operation, await this.#request(operation, request, asking, clock), asking);
        return { ...reply, batches: readingBatches(reply.batches, (payload) => this.#event(payload)) };
      },
    };
  }

  /**
   * The extensions that the server has activated. Servers only SHOULD report them (A2A, topic "Extensions"). If a server does not report them, the
   * requested extensions of kind `data` count as active.
   */
  #activated(
    uris: readonly string[] | undefined,
    { extensions }: Pick<CallContext, "extensions">,
  ): readonly ExtensionReader[] {
    return uris === undefined
      ? this.#of(extensions).filter(({ extension }) => extension.kind === "data")
      : this.#of(uris);
  }

  #of(uris: readonly string[] = []): readonly ExtensionReader[] {
    return this.#readers.filter(({ extension }) => uris.includes(extension.uri));
  }

  /** The signal may be a getter, which a spread does not copy. */
  #asking({ signal, ...rest }: CallContext): CallContext {
    return { ...rest, signal, extensions: [...new Set([...rest.extensions, ...this.#uris])] };
  }

  /** Runs the hooks of the extensions on a request. */
  async #request<Name extends OperationName>(
    operation: Name,
    request: Operations[Name]["request"],
    { extensions, signal }: CallContext,
    clock: Clock,
  ): Promise<Operations[Name]["request"]> {
    // The request of an extension method belongs to that extension, so other extensions do not change it.
    if (isMethod(operation)) return request;
    const readers = this.#of(extensions);
    let changed: Operations[Name]["request"] = request;
    for (const { extension } of readers) {
      const { onRequest } = extension as Hooks;
      if (onRequest === undefined) continue;
      const params = this.paramsOf(extension);
      const call: RequestingCall = { operation, card: this.#card, params, clock };
      try {
        const returned = onRequest.call(extension, copyFor(changed), call);
        const after: unknown = isPromise(returned) ? await given(extension, returned, signal, clock) : returned;
        changed = checkedRequest(changed, after);
      } catch (thrown) {
        if (signal?.aborted === true) throw thrown;
        this.#failed(extension, "onRequest", thrown);
      }
    }
    if (isSend(operation, changed)) this.#checkOutgoing(readers, changed);
    return changed;
  }

  #checkOutgoing(readers: readonly ExtensionReader[], request: SendMessageRequest): void {
    for (const reader of readers) {
      const { uri, kind } = reader.extension;
      let fields: readonly FieldViolation[] = [];
      try {
        fields = misfitsOfInput(reader, request);
      } catch (thrown) {
        this.#failed(reader.extension, "schema", thrown);
      }
      if (fields.length === 0) continue;
      if (kind !== "data") throw invalidParams(fields);
      this.#logger.warn("Sending extension data that does not match its schema", { uri, fields });
    }
  }

  #answer<Name extends UnaryName>(
    operation: Name,
    reply: Reply<Operations[Name]["response"]>,
  ): Reply<Operations[Name]["response"]> {
    const value: object = reply.payload.value;
    const active = this.#active.get(value) ?? [];
    switch (operation) {
      case "SendMessage":
      case "GetTask":
      case "CancelTask":
      case "ListTasks": {
        const given = this.#received(value, active);
        return given === value ? reply : { ...reply, payload: new Payload(given) };
      }
      case "GetExtendedAgentCard":
        this.#use(value as AgentCard);
        return reply;
      default:
        return reply;
    }
  }

  #event(payload: Payload<StreamResponse>): Payload<StreamResponse> {
    const { value } = payload;
    // If the end of a stream was lost, the retry layer reads the task instead. The activation is then stored for the task, not for the event.
    const active = this.#active.get(value) ?? (value.task && this.#active.get(value.task)) ?? [];
    const given = this.#received(value, active);
    return given === value ? payload : new Payload(given);
  }

  /** An incoming event, answer, task, or list of tasks, with `ext`. */
  #received<T extends object>(value: T, active: readonly ExtensionReader[]): T {
    const { tasks, status } = value as { readonly tasks?: readonly object[]; readonly status?: unknown };
    if (Array.isArray(tasks)) {
      const given = tasks.map((task: object) => this.#received(task, active));
      return given.every((task, at) => task === tasks[at]) ? value : { ...value, tasks: given };
    }
    const event = (status === undefined ? value : { task: value }) as StreamResponse;
    return give(
      value,
      activatedIn(active, (reader) => this.read(reader, event)),
      ({ id: taskId, contextId = "" }, artifact) =>
        readWhenAsked(active, (reader) => this.read(reader, { artifactUpdate: { taskId, contextId, artifact } })),
    );
  }

  /** A task from a webhook, with `ext`. `uris` are the extensions that the sender reported as active. */
  delivered(task: Task, uris: readonly string[] | undefined): Task {
    return this.#received(task, this.#activated(uris, { extensions: this.#uris }));
  }

  /** The result of `event.ext()`. */
  read(reader: ExtensionReader, event: StreamResponse): unknown {
    const { extension } = reader;
    const { onEvent } = extension as Hooks;
    const reads = reader.event(event);
    if (onEvent === undefined) return reads;
    try {
      // A copy, so that an extension that changes the event affects only itself.
      const read = onEvent.call(extension, copyFor(event), reads);
      // A caller that never calls `ext()` does not await this promise, and an unhandled rejection would end the process.
      if (isPromise(read)) read.then(undefined, (thrown: unknown) => this.#log(extension, "onEvent", thrown));
      return read;
    } catch (thrown) {
      this.#failed(extension, "onEvent", thrown);
      return undefined;
    }
  }

  /** A failed hook of kind `data` is only logged. */
  #failed(extension: AnyExtension, hook: string, thrown: unknown): void {
    if (extension.kind === "data") return this.#log(extension, hook, thrown);
    if (thrown instanceof A2AError) throw thrown;
    const text = `${hook} of the extension ${extension.uri} failed: ${String(thrown)}`;
    throw new A2AError("InternalError", text, { cause: thrown });
  }

  #log({ uri }: AnyExtension, hook: string, cause: unknown): void {
    this.#logger.warn("Extension hook failed", { uri, hook, cause });
  }
}

/** Maximum duration of an `onRequest` hook of kind `data`, in milliseconds. */
const dataTimeout = 30_000;

/** The result of `onRequest`, unless the call ends first. Only kind `data` has a time limit, because others, such as wallets, may wait for a user. */
async function given(
  { kind }: AnyExtension,
  returned: PromiseLike<unknown>,
  signal: AbortSignal | undefined,
  clock: Clock,
): Promise<unknown> {
  let forget = (): void => {};
  const ended = new Promise<never>((_, reject) => (forget = onAbort(signal, reject)));
  try {
    return await Promise.race([inTime(returned, { clock, limit: kind === "data" ? dataTimeout : Infinity }), ended]);
  } finally {
    forget();
  }
}

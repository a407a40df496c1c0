import { onTestFinished } from "vitest";
import { defineAgent, type AgentDefinition } from "../../src/agent/index.ts";
import type { LogFields, Logger } from "@parley/a2a/internal/base/index";
import type { Message, SendMessageConfiguration, StreamResponse, Task } from "@parley/a2a/internal/model/index";
import type { CallContext, StreamItem, Turn } from "@parley/a2a/internal/protocol/index";
import type { Store } from "../../src/store/index.ts";
import { callContext, inProcess, type InProcess, type InProcessOptions } from "@parley/testing";
import { collect } from "../../../../test/secrets.ts";

export type OnMessage = (turn: Turn) => ReturnType<AgentDefinition["onMessage"]>;

export interface Line extends LogFields {
  readonly level: string;
  readonly message: string;
}

export interface Harness extends InProcess {
  readonly log: readonly Line[];
  send(text: string, init?: SendInit): Promise<Task>;
  /** Does the same as `send`, but accepts either kind of answer. */
  ask(text: string, init?: SendInit): Promise<{ task?: Task; message?: Message }>;
  stream(text: string, init?: SendInit): Promise<Reading>;
  subscribe(taskId: string, init?: CallInit): Promise<Reading>;
  get(taskId: string, init?: CallInit & { historyLength?: number }): Promise<Task>;
  cancel(taskId: string, init?: CallInit): Promise<Task>;
}

type CallInit = Partial<CallContext> & { subject?: string };

export interface SendInit extends CallInit {
  message?: Partial<Message>;
  configuration?: SendMessageConfiguration;
}

export function messageOf(text: string, init: Partial<Message> = {}): Message {
  return { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }], ...init };
}

/** Creates an engine with an agent that has this function. Closes the engine when the test is over. */
export function harness(
  onMessage: OnMessage,
  options: InProcessOptions & { behaviour?: Partial<AgentDefinition> } = {},
): Harness {
  const { behaviour, ...rest } = options;
  const log: Line[] = [];
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      log.push({ ...fields, level, message });
      collect(message, fields);
    };
  const logger: Logger = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  const agent = defineAgent({ name: "test", description: "a test", version: "1", skills: [], ...behaviour, onMessage });
  const made = inProcess(agent, { logger, ...rest });
  onTestFinished(() => made.engine.close());

  const ask: Harness["ask"] = async (text, { message, configuration, ...call } = {}) => {
    const request = { message: messageOf(text, message), ...(configuration && { configuration }) };
    return (await made.service.call("SendMessage", request, callContext(call))).payload.value;
  };
  return {
    ...made,
    log,
    ask,
    async send(text, init) {
      const { task, message } = await ask(text, init);
      if (task === undefined) throw new Error(`Expected a task, got ${JSON.stringify(message)}`);
      return task;
    },
    async stream(text, { message, configuration, ...call } = {}) {
      const request = { message: messageOf(text, message), ...(configuration && { configuration }) };
      return new Reading((await made.service.stream("SendStreamingMessage", request, callContext(call))).batches);
    },
    async subscribe(id, call) {
      return new Reading((await made.service.stream("SubscribeToTask", { id }, callContext(call))).batches);
    },
    async get(id, { historyLength, ...call } = {}) {
      const request = { id, ...(historyLength !== undefined && { historyLength }) };
      return (await made.service.call("GetTask", request, callContext(call))).payload.value;
    },
    cancel: async (id, call) => (await made.service.call("CancelTask", { id }, callContext(call))).payload.value,
  };
}

/** A stream that a test reads event by event. */
export class Reading {
  readonly #iterator: AsyncIterator<readonly StreamItem[]>;
  #gathered: StreamItem[] = [];

  constructor(batches: AsyncIterable<readonly StreamItem[]>) {
    this.#iterator = batches[Symbol.asyncIterator]();
  }

  /** Returns the next event, or `undefined` at the end. */
  async next(): Promise<StreamItem | undefined> {
    if (this.#gathered.length === 0) {
      const step = await this.#iterator.next();
      if (step.done === true) return undefined;
      this.#gathered = [...step.value];
    }
    return this.#gathered.shift();
  }

  async all(): Promise<StreamItem[]> {
    const items: StreamItem[] = [];
    for (let item = await this.next(); item !== undefined; item = await this.next()) items.push(item);
    return items;
  }

  /** Reads the stream until it ends. Returns the batches. */
  async batches(): Promise<StreamItem[][]> {
    const batches: StreamItem[][] = [];
    for (;;) {
      const step = await this.#iterator.next();
      if (step.done === true) return batches;
      batches.push([...step.value]);
    }
  }

  async until(matches: (event: StreamResponse) => boolean): Promise<StreamItem> {
    for (let item = await this.next(); item !== undefined; item = await this.next())
      if (matches(item.payload.value)) return item;
    throw new Error("The stream ended before that event came");
  }

  async leave(): Promise<void> {
    await this.#iterator.return?.();
  }
}

/** Returns an event in short form: its state, or the text of its artifact or message. */
export function gist(event: StreamResponse): string {
  if (event.task !== undefined) return `task ${short(event.task.status.state)}`;
  if (event.statusUpdate !== undefined) return short(event.statusUpdate.status.state);
  if (event.message !== undefined) return `message ${event.message.parts.map((part) => part.text).join("")}`;
  return `artifact ${event.artifactUpdate.artifact.parts.map((part) => part.text).join("")}`;
}

export function short(state: string): string {
  return state.replace("TASK_STATE_", "").toLowerCase();
}

/** Creates a promise that a test resolves, so that agents need no timer. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** Polls until the condition holds. */
export async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 2_000; tries += 1) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error("The condition was not met");
}

/** Binds the methods of a store, for a store that replaces some of these methods. */
export function bound(store: Store): Store {
  return {
    durable: store.durable,
    append: (items) => store.append(items),
    head: (scope, id) => store.head(scope, id),
    load: (scope, id, options) => store.load(scope, id, options),
    read: (scope, id, options) => store.read(scope, id, options),
    list: (scope, query) => store.list(scope, query),
    once: (owner, key, now) => store.once(owner, key, now),
    conversation: (context, options) => store.conversation(context, options),
    claimable: (query) => store.claimable(query),
    stranded: (query) => store.stranded(query),
    features: (scope, taskId, feature) => store.features(scope, taskId, feature),
    dueFeatures: (query) => store.dueFeatures(query),
    sweep: (options) => store.sweep(options),
    close: () => store.close(),
  };
}

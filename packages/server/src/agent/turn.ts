import { type Clock, leavable, type Logger } from "@parley/a2a/internal/base/index";
import { receivedFiles } from "@parley/a2a/internal/files/received";
import {
  type Content,
  type JsonLike,
  type JsonObject,
  type JsonObjectLike,
  type JsonValue,
  type Message,
  type Part,
  partsOf,
  type StandardSchema,
  type Task,
  type TaskState,
} from "@parley/a2a/internal/model/index";
import type {
  AgentEvent,
  AgentMessage,
  AgentYield,
  AnyExtension,
  ArtifactEvent,
  ArtifactInit,
  ArtifactWriter,
  AuditDetails,
  AuthorizationInit,
  ByteSource,
  CheckedWaitOptions,
  Credentials,
  DelegateClient,
  Delegated,
  DelegateMessage,
  DelegateOptions,
  Delegations,
  FileContent,
  FileInit,
  FilesOptions,
  KeyedWait,
  OpenAuthorization,
  SentFile,
  StepCall,
  StepOptions,
  Turn,
  TurnBase,
  TurnContext,
  TurnMemory,
  WriterOptions,
} from "@parley/a2a/internal/protocol/index";
import type { DelegateCall } from "./delegate/keys.ts";
import { createWriter, streamText } from "./writer.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/** The facts of a turn. It is a class, because an object literal would copy twenty members for each message. */
class FactsOfTurn {
  protected readonly base: TurnBase;

  constructor(base: TurnBase) {
    this.base = base;
  }

  get message(): Message {
    return this.base.message;
  }

  get text(): string {
    return this.base.text;
  }

  get taskId(): string {
    return this.base.taskId;
  }

  get contextId(): string {
    return this.base.contextId;
  }

  get task(): Task | undefined {
    return this.base.task;
  }

  get number(): number {
    return this.base.number;
  }

  get attempt(): number {
    return this.base.attempt;
  }

  get checkpoint(): JsonValue | undefined {
    return this.base.checkpoint;
  }

  get principal(): Turn["principal"] {
    return this.base.principal;
  }

  get call(): Turn["call"] {
    return this.base.call;
  }

  get headers(): Turn["headers"] {
    return this.base.headers;
  }

  get metadata(): JsonObject | undefined {
    return this.base.metadata;
  }

  get acceptedOutputModes(): readonly string[] {
    return this.base.acceptedOutputModes;
  }

  ext(extension: AnyExtension): undefined {
    return this.base.extension(extension.uri) as undefined;
  }

  get extensions(): readonly string[] {
    return this.base.extensions;
  }

  get signal(): Turn["signal"] {
    return this.base.signal;
  }

  get context(): TurnContext {
    return this.base.context;
  }

  get logger(): Logger {
    return this.base.logger;
  }

  get clock(): Clock {
    return this.base.clock;
  }

  allows(skillId: string): boolean {
    return this.base.allows(skillId);
  }

  state(): JsonValue | undefined {
    return this.base.state();
  }

  setState<Value extends JsonLike<Value>>(value: Value | undefined): void {
    this.base.setState(value);
  }

  audit(action: string, details?: AuditDetails): void {
    this.base.audit(action, details);
  }

  makeId(): string {
    return this.base.makeId();
  }

  flush(): Promise<void> {
    return this.base.flush();
  }
}

/**
 * Identifies the waits of a turn, with the same names in each attempt. Sequential waits are named by their order. In
 * `turn.all()` the order may differ between attempts, so a wait is named by its time or event.
 */
class WaitPlaces {
  readonly #base: Pick<TurnBase, "count">;
  /** The number of nested `turn.all()` calls in progress. */
  #depth = 0;

  constructor(base: Pick<TurnBase, "count">) {
    this.#base = base;
  }

  /** Begins a `turn.all()` call. The returned function ends it. */
  race(): () => void {
    this.#depth += 1;
    return () => {
      this.#depth -= 1;
      if (this.#depth === 0) this.#base.count(races, 1);
    };
  }

  /**
   * Identifies a wait. The wait gets its number only when the function starts to wait, so an earlier checkpoint does not count it.
   *
   * @param ordered - Its name outside `turn.all()`, before the number.
   * @param raced - Its name in `turn.all()`, before the number.
   * @param key - The agent's own key, if any.
   */
  place(ordered: string, raced: string, key: string | undefined): () => string {
    if (key !== undefined) return () => `=${key}`;
    const base = this.#base;
    // Each `turn.all()` numbers its own waits, because others may progress differently in another attempt.
    const of = this.#depth === 0 ? ordered : `a${base.count(races, 0) + 1}.${raced}`;
    return () => `${of}#${base.count(of, 1)}`;
  }
}

/** The counter of `turn.all()` calls that have ended. */
const races = "a";

interface StatusOptions<Metadata> {
  readonly keep?: boolean;
  readonly metadata?: Metadata;
  readonly messageMetadata?: JsonObject;
}

/** Metadata without content makes a message without parts, which is rejected with a clear error. */
function messageOf(content?: Content, metadata?: JsonObject): { readonly message?: AgentMessage } {
  if (metadata !== undefined) return { message: { parts: content === undefined ? [] : partsOf(content), metadata } };
  return content === undefined ? {} : { message: { parts: partsOf(content) } };
}

function status(state: TaskState, content?: Content, options?: StatusOptions<unknown>): AgentEvent {
  const { metadata, keep, messageMetadata } = options ?? {};
  return {
    kind: "status",
    state,
    ...messageOf(content, messageMetadata),
    ...defined({ metadata: metadata as JsonObject | undefined, keep }),
  };
}

function artifactOf({ open = false, ...artifact }: ArtifactInit & { artifactId: string }): ArtifactEvent {
  return open ? { kind: "artifact", artifact } : { kind: "artifact", artifact, lastChunk: true };
}

function appendTo(artifactId: string, parts: readonly Part[], last: boolean): ArtifactEvent {
  return { kind: "artifact", artifact: { artifactId, parts }, append: true, ...(last && { lastChunk: true }) };
}

/** Wraps the engine's turn, and adds builders for events. */
export class AuthorTurn extends FactsOfTurn implements Turn {
  /** The calls of `delegate()`, in order. */
  #calls: DelegateCall[] | undefined;
  /** Created by the first wait, or the first `all()`. */
  #places: WaitPlaces | undefined;

  reply(content: Content): AgentEvent {
    return { kind: "reply", message: { parts: partsOf(content) } };
  }

  working<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
    content?: Content,
    options?: StatusOptions<Metadata>,
  ): AgentEvent {
    return status("TASK_STATE_WORKING", content, options);
  }

  inputRequired<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
    content: Content,
    options?: Omit<StatusOptions<Metadata>, "keep">,
  ): AgentEvent {
    return status("TASK_STATE_INPUT_REQUIRED", content, options);
  }

  authRequired<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
    content: Content,
    options?: Omit<StatusOptions<Metadata>, "keep">,
  ): AgentEvent {
    return status("TASK_STATE_AUTH_REQUIRED", content, options);
  }

  requestAuthorization<Init extends AuthorizationInit>(init: Init): Promise<OpenAuthorization<Init["form"]>> {
    return this.base.requestAuthorization(init);
  }

  // Loaded only for agents that request authorizations.
  async *authorize<Init extends AuthorizationInit>(
    init: Init,
  ): AsyncGenerator<AgentYield, Credentials[Init["form"]], void> {
    const { authorize } = await import("./authorize.ts");
    return yield* authorize(this.base, init);
  }

  delegations(): Promise<Delegations> {
    return this.base.delegations();
  }

  delegate(
    client: DelegateClient,
    message: DelegateMessage,
    options: DelegateOptions = {},
  ): AsyncGenerator<AgentYield, Delegated, void> {
    const base = this.base;
    const calls = (this.#calls ??= []);
    const call: DelegateCall = { client, message, options };
    calls.push(call);
    return leavable(async function* (left) {
      const { delegate } = await import("./delegate/delegation.ts");
      return yield* delegate(base, calls, call, left);
    });
  }

  all(
    generators: readonly AsyncGenerator<AgentYield, unknown, void>[],
    options: { readonly settled?: boolean } = {},
    // The overloads of `Turn` define the result.
  ): AsyncGenerator<AgentYield, never, void> {
    const { clock } = this;
    const places = this.#waitPlaces();
    return leavable(async function* (left) {
      const { merge } = await import("./delegate/merge.ts");
      const over = places.race();
      try {
        return (yield* merge(generators, { settled: options.settled === true, left, clock })) as never;
      } finally {
        over();
      }
    });
  }

  memory(): Promise<TurnMemory> {
    return this.base.memory();
  }

  step(name: string, run: (call: StepCall) => unknown, options?: StepOptions): Promise<never> {
    const done = import("./steps.ts").then(({ step }) => step(this.base, name, run, options) as Promise<never>);
    // If the agent does not await it, a rejection must not end the process.
    done.catch(() => {});
    return done;
  }

  sleep(until: Date | number, { key }: KeyedWait = {}): AsyncGenerator<AgentYield, void, void> {
    const base = this.base;
    // Computed dates differ between attempts, so such waits are identified by their order.
    const place = this.#waitPlaces().place("s", typeof until === "number" ? `s${until}` : "d", key);
    return (async function* () {
      const which = place();
      const { sleep } = await import("./waits.ts");
      yield* sleep(base, which, until);
    })();
  }

  waitFor<Output>(
    name: string,
    options?: Partial<CheckedWaitOptions<Output>>,
  ): AsyncGenerator<AgentYield, never, void> {
    const base = this.base;
    const place = this.#waitPlaces().place(`e${name}`, `e${name}`, options?.key);
    return (async function* () {
      const which = place();
      const { waitFor } = await import("./waits.ts");
      return (yield* waitFor(base, which, name, options)) as never;
    })();
  }

  #waitPlaces(): WaitPlaces {
    return (this.#places ??= new WaitPlaces(this.base));
  }

  async data<Output>(schema: StandardSchema<Output>, options?: { ask?: Content }): Promise<Output> {
    const { messageData } = await import("./data.ts");
    return messageData(this, schema, options?.ask);
  }

  completed(content?: Content): AgentEvent {
    return status("TASK_STATE_COMPLETED", content);
  }

  failed(content: Content): AgentEvent {
    return status("TASK_STATE_FAILED", content);
  }

  rejected(content: Content): AgentEvent {
    return status("TASK_STATE_REJECTED", content);
  }

  artifact<Metadata extends JsonObjectLike<Metadata> = JsonObject>(init: ArtifactInit<Metadata>): ArtifactEvent {
    return artifactOf({ ...(init as ArtifactInit), artifactId: init.artifactId ?? this.makeId() });
  }

  append(artifactId: string, parts: readonly Part[], options?: { last?: boolean }): ArtifactEvent {
    return appendTo(artifactId, parts, options?.last === true);
  }

  writer<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
    options: WriterOptions<Metadata> = {},
  ): ArtifactWriter {
    return createWriter(options.artifactId ?? this.makeId(), options as WriterOptions, this.clock);
  }

  stream<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
    source: AsyncIterable<string>,
    options: WriterOptions<Metadata> = {},
  ): AsyncGenerator<AgentEvent, void, void> {
    return streamText(source, options.artifactId ?? this.makeId(), options as WriterOptions, this.clock);
  }

  // Loaded only by agents that send files.
  async *file(source: ByteSource, init: FileInit): AsyncGenerator<AgentEvent, SentFile, void> {
    const artifactId = init.artifactId ?? this.makeId();
    const { sendFile } = await import("@parley/a2a/internal/files/send");
    return yield* sendFile(source, artifactId, init, this.signal, this.base.outside);
  }

  files(options?: FilesOptions): readonly FileContent[] {
    const { parts = this.message.parts } = options ?? {};
    return receivedFiles(parts, options, () => this.signal, this.base.outside);
  }

  saveCheckpoint<Value extends JsonLike<Value>>(value: Value): AgentEvent {
    return { kind: "checkpoint", value: value as JsonValue };
  }
}

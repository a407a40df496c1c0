import {
  partsOf,
  type Content,
  type JsonLike,
  type JsonObject,
  type JsonObjectLike,
  type JsonValue,
  type Message,
  type Part,
  type StandardSchema,
  type Task,
  type TaskState,
} from "../model/index.ts";
import { LeavableGenerator, type Clock, type Logger } from "../base/index.ts";
import type {
  AnyExtension,
  AgentEvent,
  AgentMessage,
  AgentYield,
  ArtifactEvent,
  ArtifactInit,
  ArtifactWriter,
  AuthorizationInit,
  ByteSource,
  CheckedWaitOptions,
  Credentials,
  DelegateClient,
  DelegateMessage,
  DelegateOptions,
  Delegated,
  Delegations,
  FileContent,
  FileInit,
  FilesOptions,
  OpenAuthorization,
  SentFile,
  StepCall,
  StepOptions,
  Turn,
  TurnBase,
  TurnContext,
  TurnMemory,
  WriterOptions,
} from "../protocol/index.ts";
import { receivedFiles } from "../files/received.ts";
import type { DelegateCall } from "./delegate/keys.ts";
import { createWriter, streamText } from "./writer.ts";

interface StatusOptions<Metadata> {
  readonly keep?: boolean;
  readonly metadata?: Metadata;
  readonly messageMetadata?: JsonObject;
}

/** Metadata without a content makes a message without parts, which is refused with what is missing. */
function messageOf(content?: Content, metadata?: JsonObject): { readonly message?: AgentMessage } {
  if (metadata !== undefined) return { message: { parts: content === undefined ? [] : partsOf(content), metadata } };
  return content === undefined ? {} : { message: { parts: partsOf(content) } };
}

function status(state: TaskState, content?: Content, options?: StatusOptions<unknown>): AgentEvent {
  return {
    kind: "status",
    state,
    ...messageOf(content, options?.messageMetadata),
    ...(options?.metadata === undefined ? {} : { metadata: options.metadata as JsonObject }),
    ...(options?.keep === undefined ? {} : { keep: options.keep }),
  };
}

/**
 * A turn with builders of events, around the turn that the engine passes. It is a class because one is created for each
 * message: a class costs one allocation, and an object literal would copy twenty members.
 */
export class AuthorTurn implements Turn {
  readonly #base: TurnBase;
  /** The calls of `delegate()`, in their order. */
  #calls: DelegateCall[] | undefined;

  constructor(base: TurnBase) {
    this.#base = base;
  }

  get message(): Message {
    return this.#base.message;
  }

  get text(): string {
    return this.#base.text;
  }

  get taskId(): string {
    return this.#base.taskId;
  }

  get contextId(): string {
    return this.#base.contextId;
  }

  get task(): Task | undefined {
    return this.#base.task;
  }

  get number(): number {
    return this.#base.number;
  }

  get attempt(): number {
    return this.#base.attempt;
  }

  get checkpoint(): JsonValue | undefined {
    return this.#base.checkpoint;
  }

  get principal(): Turn["principal"] {
    return this.#base.principal;
  }

  get call(): Turn["call"] {
    return this.#base.call;
  }

  get headers(): Turn["headers"] {
    return this.#base.headers;
  }

  get metadata(): JsonObject | undefined {
    return this.#base.metadata;
  }

  get acceptedOutputModes(): readonly string[] {
    return this.#base.acceptedOutputModes;
  }

  ext(extension: AnyExtension): undefined {
    return this.#base.extension(extension.uri) as undefined;
  }

  get extensions(): readonly string[] {
    return this.#base.extensions;
  }

  get signal(): Turn["signal"] {
    return this.#base.signal;
  }

  get context(): TurnContext {
    return this.#base.context;
  }

  get logger(): Logger {
    return this.#base.logger;
  }

  get clock(): Clock {
    return this.#base.clock;
  }

  allows(skillId: string): boolean {
    return this.#base.allows(skillId);
  }

  state(): JsonValue | undefined {
    return this.#base.state();
  }

  setState<Value extends JsonLike<Value>>(value: Value | undefined): void {
    this.#base.setState(value);
  }

  makeId(): string {
    return this.#base.makeId();
  }

  flush(): Promise<void> {
    return this.#base.flush();
  }

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
    return this.#base.requestAuthorization(init);
  }

  // Few agents ask for authorizations, so the others do not load how.
  async *authorize<Init extends AuthorizationInit>(
    init: Init,
  ): AsyncGenerator<AgentYield, Credentials[Init["form"]], void> {
    const { authorize } = await import("./authorize.ts");
    return yield* authorize(this.#base, init);
  }

  delegations(): Promise<Delegations> {
    return this.#base.delegations();
  }

  delegate(
    client: DelegateClient,
    message: DelegateMessage,
    options: DelegateOptions = {},
  ): AsyncGenerator<AgentYield, Delegated, void> {
    const base = this.#base;
    const calls = (this.#calls ??= []);
    const at = calls.push({ client, message, options }) - 1;
    return new LeavableGenerator(async function* (left) {
      const { delegate } = await import("./delegate/delegate.ts");
      return yield* delegate(base, calls, at, left);
    });
  }

  all(
    generators: readonly AsyncGenerator<AgentYield, unknown, void>[],
    options: { readonly settled?: boolean } = {},
    // The overloads of `Turn` say what it returns.
  ): AsyncGenerator<AgentYield, never, void> {
    const { clock } = this;
    return new LeavableGenerator(async function* (left) {
      const { merge } = await import("./delegate/merge.ts");
      return (yield* merge(generators, { settled: options.settled === true, left, clock })) as never;
    });
  }

  memory(): Promise<TurnMemory> {
    return this.#base.memory();
  }

  step(name: string, run: (call: StepCall) => unknown, options?: StepOptions): Promise<never> {
    const done = import("./steps.ts").then(({ step }) => step(this.#base, name, run, options) as Promise<never>);
    // One that nobody waits for must not end the process when its turn is over.
    done.catch(() => {});
    return done;
  }

  sleep(until: Date | number): AsyncGenerator<AgentYield, void, void> {
    const base = this.#base;
    const id = base.makeId();
    return (async function* () {
      const { sleep } = await import("./waits.ts");
      yield* sleep(base, id, until);
    })();
  }

  waitFor<Output>(
    name: string,
    options?: Partial<CheckedWaitOptions<Output>>,
  ): AsyncGenerator<AgentYield, never, void> {
    const base = this.#base;
    const id = base.makeId();
    return (async function* () {
      const { waitFor } = await import("./waits.ts");
      return (yield* waitFor(base, id, name, options)) as never;
    })();
  }

  // Nor how data is checked.
  async data<Output>(schema: StandardSchema<Output>, options?: { ask?: Content }): Promise<Output> {
    const { messageData } = await import("./message-data.ts");
    return messageData(this.message, schema, options?.ask);
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
    const { artifactId = this.makeId(), open = false, ...rest } = init as ArtifactInit;
    const artifact = { artifactId, ...rest };
    return open ? { kind: "artifact", artifact } : { kind: "artifact", artifact, lastChunk: true };
  }

  append(artifactId: string, parts: readonly Part[], options?: { last?: boolean }): ArtifactEvent {
    return {
      kind: "artifact",
      artifact: { artifactId, parts },
      append: true,
      ...(options?.last === true ? { lastChunk: true } : {}),
    };
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

  // Loaded by agents of files alone.
  async *file(source: ByteSource, init: FileInit): AsyncGenerator<AgentEvent, SentFile, void> {
    const artifactId = init.artifactId ?? this.makeId();
    const { sendFile } = await import("../files/send.ts");
    return yield* sendFile(source, artifactId, init, this.signal);
  }

  files(options?: FilesOptions): readonly FileContent[] {
    return receivedFiles(this.message.parts, options, () => this.signal);
  }

  saveCheckpoint<Value extends JsonLike<Value>>(value: Value): AgentEvent {
    return { kind: "checkpoint", value: value as JsonValue };
  }
}

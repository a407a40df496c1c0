import type { Content, JsonObject, JsonObjectLike, Part, StandardSchema } from "../model/index.ts";
import type { AgentEvent, AgentYield, ArtifactEvent, ArtifactInit, ArtifactWriter, WriterOptions } from "./agent.ts";
import type { ByteSource, FileContent, FileInit, FilesOptions, SentFile, TurnFiles } from "./files.ts";
import type { AuthorizationInit, Credentials } from "./authorization.ts";
import type {
  DelegateClient,
  DelegateMessage,
  DelegateOptions,
  Delegated,
  DelegatingCall,
  DelegationWatch,
  ReturnOf,
  Settled,
} from "./delegation.ts";
import type { ExtensionsOf, TurnOf } from "./extension.ts";
import type { TurnRows } from "./extension-hooks.ts";
import type { TurnSteps } from "./steps.ts";
import type { Given, Storable, TurnStorage, TurnFacts } from "./turn-context.ts";

/* What the function of an agent is called with: a message, its task and conversation, and builders of events. */

/** One call of an executor: a message, and what is needed to answer it. `Turn` adds the builders of events. */
export interface TurnBase extends TurnFacts, TurnStorage {
  /** What `Turn.ext()` gives, by the URI of the extension. `undefined` where it is not active. */
  extension(uri: string): unknown;
  /** What an extension keeps with the task, by its URI: `ExtensionTurn.rows`. */
  extensionRows(uri: string): TurnRows;
  /** Tells the active extensions of a delegation. `undefined`: none of them wants to know. */
  watchDelegation?(call: DelegatingCall): DelegationWatch | undefined;
  /** Whether the agent is called again for a turn whose run was lost in a crash (`resumable`). */
  readonly resumable: boolean;
  /** Adds to a number of this turn, and returns it. A resumed run goes on from the numbers of its checkpoint. */
  count(of: string, more: number): number;
  /** Files that are outside of the task. Absent: there are none. */
  readonly outside?: TurnFiles | undefined;
}

/** What the function of an agent is called with: a message, and builders of events. A builder has no effect: yield or return its result. */
export interface Turn<Types = object> extends TurnFacts, TurnStorage<Types>, TurnSteps {
  /**
   * What an extension offers in this turn: what its `onTurnStart` has returned, or the values that it has put into the message. `undefined`
   * where the caller has not asked for it. Takes the extensions that the agent names in `extensions`, and no others.
   *
   * @example
   * ```ts
   * import * as z from "zod";
   *
   * const konamiCode = defineExtension({ uri: "https://example.com/extensions/konami/v1", metadata: { request: { code: z.string() } } });
   *
   * async function* answer(turn: Turn<{ extensions: [typeof konamiCode] }>): AsyncGenerator<AgentEvent> {
   *   const code = turn.ext(konamiCode)?.request.code;
   *   yield turn.completed(code === "up up down down" ? "You have won." : "It is uncertain.");
   * }
   * ```
   */
  ext<E extends ExtensionsOf<Types>>(extension: E): TurnOf<E> | undefined;
  /**
   * An answer. As the first event it is a direct reply, and there is no task (A2A 1.0 §3.1.1). Later it completes the task.
   *
   * @example
   * ```ts
   * if (turn.text === "") return turn.reply("Ask me something.");
   * ```
   */
  reply(content: Content): AgentEvent;
  /**
   * Progress. Clients see it while it is the task's status. With `keep` it also enters the history, for later turns and
   * callers.
   *
   * @example
   * ```ts
   * yield turn.working("Reading the file", { keep: true });
   * ```
   *
   * `metadata` is that of the status update, and `messageMetadata` that of its message, where the sub-states of extensions are.
   */
  working<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
    content?: Content,
    options?: { keep?: boolean; metadata?: Metadata; messageMetadata?: JsonObject },
  ): AgentEvent;
  /**
   * Asks the user a question; return after it. The answer is the next turn. Until it comes, the task stays at the question:
   * a later status of this turn is not stored and is logged as an error, unless it is `failed` or `rejected`.
   *
   * @example
   * ```ts
   * yield turn.inputRequired("Which city?");
   * return;
   * ```
   */
  inputRequired<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
    content: Content,
    options?: { metadata?: Metadata; messageMetadata?: JsonObject },
  ): AgentEvent;
  /**
   * Says that an authorization is needed which the agent obtains itself (A2A 1.0 §7.6.1). The turn may wait for it. `authorize()` does all
   * of this.
   */
  authRequired<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
    content: Content,
    options?: { metadata?: Metadata; messageMetadata?: JsonObject },
  ): AgentEvent;
  /**
   * Asks for an authorization, and waits for it (A2A 1.0 §7.6, 0.3 §4.5): the task is AUTH_REQUIRED with a link, streams stay open, and
   * once the credential has come the task is WORKING again. The wait survives a restart: the function is then called again from its
   * beginning, also where the agent is not `resumable`, and comes to the same request. So do nothing before it that must not be done
   * twice. The credential is in no event, no history and no log. It is for what `reason` says, and for nothing that comes later.
   *
   * @throws AuthorizationNotGiven where it was refused, or not given in time, or the caller sent another message. There is no need
   * to catch it.
   *
   * @example
   * ```ts
   * const token = yield* turn.authorize({ form: "secret", reason: "The API key of your shop" });
   * ```
   */
  authorize<Init extends AuthorizationInit>(init: Init): AsyncGenerator<AgentYield, Credentials[Init["form"]], void>;
  /**
   * Lets another agent do a part of the work, and waits for it: sends it a message and follows its task. What the other agent says on
   * the way becomes progress of this task, its artifacts become artifacts of this task, and its question becomes a question of this
   * task: the function ends there (its `finally` runs), and is called again for the same turn when the answer has come, which goes down.
   * A request for an authorization is passed on with its link (A2A 1.0 §7.6.2). Where this task is canceled, the other one is too.
   *
   * It survives a restart, and sends nothing twice: the function is called again from its beginning, also where the agent is not
   * `resumable`, comes to the same delegation, and goes on with it. A delegation that was over has the same result then, without a call.
   * So do before it only what may be done twice. Principal and credentials are not passed on: the client has its own.
   *
   * @throws DelegationFailed where the other agent did not do it. There is no need to catch it: the task fails, and says why.
   *
   * @example
   * ```ts
   * const { text } = yield* turn.delegate(weather, `Weather in ${turn.text}`);
   * ```
   */
  delegate(
    client: DelegateClient,
    message: DelegateMessage,
    options?: DelegateOptions,
  ): AsyncGenerator<AgentYield, Delegated, void>;
  /**
   * Runs several delegations, or other generators of events, at the same time. Their events are merged in the order in which they come,
   * and a generator goes on only when its event was taken: a slow reader slows all of them down. Returns what they returned, in the order
   * given. Where one throws, the others are ended, and the error is thrown; with `settled` all of them go on to their end.
   *
   * @example
   * ```ts
   * const [flight, hotel] = yield* turn.all([turn.delegate(flights, "To Basel"), turn.delegate(hotels, "In Basel")]);
   * ```
   */
  all<const T extends readonly AsyncGenerator<AgentYield, unknown, void>[]>(
    generators: T,
    options?: { readonly settled?: false },
  ): AsyncGenerator<AgentYield, { -readonly [K in keyof T]: ReturnOf<T[K]> }, void>;
  all<const T extends readonly AsyncGenerator<AgentYield, unknown, void>[]>(
    generators: T,
    options: { readonly settled: true },
  ): AsyncGenerator<AgentYield, { -readonly [K in keyof T]: Settled<ReturnOf<T[K]>> }, void>;
  /**
   * The data of the message, checked by a schema of zod, valibot, ArkType or any other library of Standard Schema, and with its
   * type: the first value that fits, of data parts, and of texts and files whose media type is JSON. Where none fits, it throws what
   * the client can read; there is no need to catch it. A message without a task is then refused as `InvalidParams`, with paths such as
   * `message.parts[0].data.amount`. With `ask`, and for a task that exists, the client is asked again instead (INPUT_REQUIRED).
   * Data is refused before that where `defaultInputModes` of the agent does not have `application/json`.
   *
   * With `ask` the question has the JSON Schema of the data as one more part (`application/schema+json`), where the library gives it
   * (zod 4.2, ArkType 2.1.28, valibot by `toStandardJsonSchema()`), the question has no data of its own, and the client reads JSON. A
   * message that is one text, and all of it a JSON object, then counts as data: many clients can send text alone.
   *
   * @param options - `ask`: the question where the data is missing, or does not fit.
   * @throws MessageRefused where nothing fits.
   *
   * @example
   * ```ts
   * import * as z from "zod";
   *
   * const Expense = z.object({ amount: z.number().positive(), purpose: z.string() });
   * const { amount } = await turn.data(Expense, { ask: "Please send amount and purpose" });
   * ```
   */
  data<Output>(schema: StandardSchema<Output>, options?: { ask?: Content }): Promise<Output>;
  /** Ends the task as completed. The end of the function does the same. */
  completed(content?: Content): AgentEvent;
  /** Ends the task as failed. The client reads the content; an error that is thrown tells it nothing. */
  failed(content: Content): AgentEvent;
  /** Ends the task as rejected: the agent does not take it on. */
  rejected(content: Content): AgentEvent;
  /**
   * A complete artifact, or the beginning of one with `open`.
   *
   * @example
   * ```ts
   * yield turn.artifact({ name: "forecast", parts: [text("Sunny")] });
   * ```
   */
  artifact<Metadata extends JsonObjectLike<Metadata> = JsonObject>(init: ArtifactInit<Metadata>): ArtifactEvent;
  /**
   * More parts of an open artifact. `last` closes it. An unknown or closed artifact is an error of the agent: the task fails.
   *
   * @example
   * ```ts
   * const rows = turn.artifact({ name: "rows", parts: [data(1)], open: true });
   * yield rows;
   * yield turn.append(rows.artifact.artifactId, [data(2)], { last: true });
   * ```
   */
  append(artifactId: string, parts: readonly Part[], options?: { last?: boolean }): ArtifactEvent;
  /** Makes a writer that collects pieces of text into chunks of one artifact. */
  writer<Metadata extends JsonObjectLike<Metadata> = JsonObject>(options?: WriterOptions<Metadata>): ArtifactWriter;
  /**
   * Streams text, such as the tokens of a model, as chunks of one artifact.
   *
   * @example
   * ```ts
   * yield* turn.stream(tokens, { name: "answer" });
   * ```
   */
  stream<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
    source: AsyncIterable<string>,
    options?: WriterOptions<Metadata>,
  ): AsyncGenerator<AgentEvent, void, void>;
  /**
   * Sends a file as one artifact in chunks, and never holds it as a whole. The next chunk is read when there is room for it. When the
   * turn is aborted, the source is closed. A resumed run has to give the same bytes again: what is stored is not stored twice.
   *
   * @returns the id of the artifact, and the size of the file.
   *
   * @example
   * ```ts
   * const { body } = await fetch("https://example.com/report.pdf");
   * if (body) yield* turn.file(body, { name: "report.pdf", mediaType: "application/pdf" });
   * ```
   */
  file(source: ByteSource, init: FileInit): AsyncGenerator<AgentEvent, SentFile, void>;
  /**
   * The files of the message: its parts that are bytes or a URL, and those with a file name. A file at a URL is read only where a
   * `fetch` is given: the caller chose the address, so give one that refuses internal networks.
   *
   * @example
   * ```ts
   * for (const file of turn.files()) yield turn.working(`${file.name} has ${file.size} bytes`);
   * ```
   */
  files(options?: FilesOptions): readonly FileContent[];
  /**
   * Where a resumed run continues: it finds the value in `turn.checkpoint`. Yield it in one array with the events that it
   * covers, so that they are stored together. Only agents with `resumable` are resumed.
   *
   * @example
   * ```ts
   * yield [turn.artifact({ parts: [text("Page 1")] }), turn.saveCheckpoint(1)];
   * ```
   */
  saveCheckpoint<Value extends Storable<Types, "checkpoint", Value>>(
    value: Given<Types, "checkpoint", Value>,
  ): AgentEvent;
}

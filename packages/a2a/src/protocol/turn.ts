import type { Content, JsonLike, JsonObject, JsonObjectLike, Part, StandardSchema } from "../model/index.ts";
import type {
  AgentEvent,
  AgentYield,
  ArtifactEvent,
  ArtifactInit,
  ArtifactWriter,
  WriterOptions,
} from "./agent-event.ts";
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
import type { AnyExtension, ExtensionsOf, TurnOf } from "./extension.ts";
import type { TurnRows } from "./extension-hooks.ts";
import type { TurnObserver } from "./observed.ts";
import type { Begun } from "./observer.ts";
import type { TurnSteps } from "./steps.ts";
import type { Given, Storable, TurnStorage, TurnFacts } from "./turn-context.ts";

/* The argument of an agent's function: a message, its task and conversation, and builders of events. */

/** One call of an executor: a message, and the data to answer it. `Turn` adds builders of events. */
export interface TurnBase extends TurnFacts, TurnStorage {
  /** The result of `Turn.ext()`, by the URI of the extension. `undefined` if it is not active. */
  extension(uri: string): unknown;
  /** The rows of an extension, by its URI: `ExtensionTurn.rows`. */
  extensionRows(uri: string): TurnRows;
  /** Notifies the active extensions of a delegation. Absent: no extension has the hook. */
  watchDelegation?(call: DelegatingCall): DelegationWatch | undefined;
  /** Notifies the observer of steps and delegations. Absent: it has no such members. */
  readonly observed?: TurnObserver<Begun> | undefined;
  /** Whether the agent is called again for a turn whose run was lost in a crash (`resumable`). */
  readonly resumable: boolean;
  /** Adds to a counter of this turn, and returns its new value. A resumed run continues with the counters of its checkpoint. */
  count(of: string, more: number): number;
  /** Files that are stored outside the task. Absent: none. */
  readonly outside?: TurnFiles | undefined;
}

/**
 * The types of an agent's stored values, all optional: `state` of a task, `context` of a conversation, and `checkpoint`. They are the
 * type argument of `defineAgent` and of `Turn`.
 *
 * @example
 * ```ts
 * interface Cart {
 *   items: string[];
 * }
 * async function* add(turn: Turn<{ state: Cart }>): AsyncGenerator<AgentEvent> {
 *   const { items } = turn.state() ?? { items: [] };
 *   turn.setState({ items: [...items, turn.text] });
 *   yield turn.inputRequired("Anything else?");
 * }
 * ```
 */
export type AgentTypes<Types> = {
  readonly [Name in keyof Types]: Name extends "state" | "context" | "checkpoint"
    ? JsonLike<Types[Name]>
    : Name extends "extensions"
      ? readonly AnyExtension[]
      : never;
};

/** The argument of an agent's function: a message, and builders of events. Builders have no effect on their own: yield or return their results. */
export interface Turn<Types = object> extends TurnFacts, TurnStorage<Types>, TurnSteps {
  /**
   * The API of an extension in this turn: the result of its `onTurnStart`, or its values in the message; `undefined` if it is not active.
   * Accepts only extensions that the agent lists in `extensions`.
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
   * An answer. As the first event it is a direct reply without a task (A2A 1.0 §3.1.1). Later it completes the task.
   *
   * @example
   * ```ts
   * if (turn.text === "") return turn.reply("Ask me something.");
   * ```
   */
  reply(content: Content): AgentEvent;
  /**
   * Progress: the status of the task. With `keep` it also enters the history. `metadata` belongs to the status update, `messageMetadata` to
   * its message.
   *
   * @example
   * ```ts
   * yield turn.working("Reading the file", { keep: true });
   * ```
   */
  working<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
    content?: Content,
    options?: { keep?: boolean; metadata?: Metadata; messageMetadata?: JsonObject },
  ): AgentEvent;
  /**
   * Asks the user a question; return after it. The answer is the next turn. Later statuses of this turn are not stored and logged as
   * errors; `failed` and `rejected` are the exceptions.
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
   * Reports that the agent needs an authorization, which it obtains itself (A2A 1.0 §7.6.1). The turn may wait for it. `authorize()` does all of
   * this.
   */
  authRequired<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
    content: Content,
    options?: { metadata?: Metadata; messageMetadata?: JsonObject },
  ): AgentEvent;
  /**
   * Requests an authorization and waits for it (A2A 1.0 §7.6, 0.3 §4.5): the task is AUTH_REQUIRED with a link, and then WORKING again. After
   * a restart the function runs again from its start and reaches the same request, so put earlier effects into `step()`. The
   * credential never appears in events, histories or logs. Throws `AuthorizationNotGiven`, which need not be caught.
   *
   * @example
   * ```ts
   * const token = yield* turn.authorize({ form: "secret", reason: "The API key of your shop" });
   * ```
   */
  authorize<Init extends AuthorizationInit>(init: Init): AsyncGenerator<AgentYield, Credentials[Init["form"]], void>;
  /**
   * Sends a message to another agent and follows its task. This task adopts its progress, artifacts and questions. At a question, the function ends
   * (its `finally` runs), and is called again for the same turn with the answer. Authorization requests (with their link, A2A 1.0 §7.6.2) and cancels
   * are forwarded; principal and credentials are not.
   *
   * It survives a restart and never sends twice: the function runs again from its start and reaches the same delegation, so put
   * earlier effects into `step()`. Throws `DelegationFailed`, which need not be caught: the task then fails with the reason.
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
   * Runs delegations, or other generators of events, concurrently, and returns their results in order. Events are merged as they arrive; a
   * slow reader slows all of them down. The first error ends the others and is thrown; with `settled` all continue.
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
   * The data of the message, with the type of a schema (zod, valibot, ArkType or any Standard Schema library): the first matching value in data
   * parts, and in texts and files with JSON. Throws `MessageRefused`, which need not be caught: a message without a task fails with `InvalidParams`,
   * with paths such as `message.parts[0].data.amount`; with `ask`, and in a task, the client is asked again.
   *
   * The question also contains the JSON Schema of the data (`application/schema+json`) if the library provides it (zod 4.2, ArkType 2.1.28,
   * valibot by `toStandardJsonSchema()`) and the client reads JSON; a text that is a JSON object then counts as data.
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
  /** Ends the task as failed. The client gets the content; a thrown error would reveal nothing to it. */
  failed(content: Content): AgentEvent;
  /** Ends the task as rejected: the agent declines it. */
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
   * More parts of an open artifact. `last` closes it. The task fails if the artifact is unknown or closed.
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
   * Sends a file as one artifact, in chunks that are never in memory all at once. Closes the source when the turn is aborted. A resumed run
   * must yield the same bytes again; stored chunks are not stored twice.
   *
   * @example
   * ```ts
   * const { body } = await fetch("https://example.com/report.pdf");
   * if (body) yield* turn.file(body, { name: "report.pdf", mediaType: "application/pdf" });
   * ```
   */
  file(source: ByteSource, init: FileInit): AsyncGenerator<AgentEvent, SentFile, void>;
  /**
   * The files of the message: parts with bytes, a URL or a file name. URLs are read only with a `fetch`. The caller chose them, so pass a `fetch`
   * that rejects internal networks.
   *
   * @example
   * ```ts
   * for (const file of turn.files()) yield turn.working(`${file.name} has ${file.size} bytes`);
   * ```
   */
  files(options?: FilesOptions): readonly FileContent[];
  /**
   * Sets the `turn.checkpoint` of a resumed run. Yield it in one array with the events that it covers, so that they are stored together. Only
   * `resumable` agents are resumed.
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

import { data, type JsonObject } from "@parley/a2a/model";
import type { AgentEvent, ArtifactWriter, Turn } from "@parley/server";
import { toPlainJson, wellFormed } from "../shared/json.ts";
import { failed, isCut, succeeded } from "../shared/outcome.ts";

/* Converts the messages of a session to events of the turn. */

/** An SDK message, or an event or block in it. */
type Some = Readonly<Record<string, unknown>>;

function some(value: unknown): Some {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function list(value: unknown): readonly Some[] {
  return Array.isArray(value) ? value.map(some) : [];
}

/** Reads the messages of one run. */
export class Reader {
  /** The last message. `undefined` until it arrives. */
  result: Some | undefined;
  readonly #turn: Turn;
  readonly #reasoning: boolean;
  /** Texts of the message in progress, by block index. */
  readonly #writers = new Map<unknown, ArtifactWriter>();
  /** Artifacts of an interrupted message, which the SDK requests again. */
  readonly #broken: string[] = [];
  #half = "";
  /** Ids of messages that were streamed. */
  readonly #streamed = new Set<unknown>();

  constructor(turn: Turn, reasoning: boolean) {
    this.#turn = turn;
    this.#reasoning = reasoning;
  }

  *read(message: Some): Generator<AgentEvent, void, void> {
    if (message["type"] === "result") this.result = message;
    // Hides the messages of subagents, because only the main agent answers the user.
    if (typeof message["parent_tool_use_id"] === "string") return;
    if (message["type"] === "stream_event") yield* this.#piece(some(message["event"]));
    if (message["type"] === "assistant" && message["error"] === undefined)
      yield* this.#message(some(message["message"]));
  }

  /** Closes open texts. */
  *end(): Generator<AgentEvent, void, void> {
    for (const writer of this.#writers.values()) yield* writer.end();
    this.#writers.clear();
  }

  *#piece({ type, index, delta, message }: Some): Generator<AgentEvent, void, void> {
    if (type === "message_start") {
      this.#streamed.add(some(message)["id"]);
      this.#broken.push(...[...this.#writers.values()].map(({ artifactId }) => artifactId));
      this.#writers.clear();
    }
    if (type === "content_block_delta") {
      const { text, thinking } = some(delta);
      if (typeof text === "string") yield* this.#text(index, text);
      if (this.#reasoning && typeof thinking === "string" && thinking !== "") yield this.#turn.working(thinking);
    }
    if (type !== "content_block_stop") return;
    yield* this.#writers.get(index)?.end() ?? [];
    this.#writers.delete(index);
  }

  /** Holds back half of a surrogate pair until the other half arrives, because UTF-8 cannot encode half a pair. */
  *#text(index: unknown, text: string): Generator<AgentEvent, void, void> {
    const all = this.#half + text;
    this.#half = /[\ud800-\udbff]$/.exec(all)?.[0] ?? "";
    const whole = wellFormed(all.slice(0, all.length - this.#half.length));
    if (whole !== "") yield* this.#writer(index).write(whole);
  }

  #writer(index: unknown): ArtifactWriter {
    const artifactId = this.#writers.has(index) ? undefined : this.#broken.shift();
    const writer =
      this.#writers.get(index) ??
      this.#turn.writer({ name: "answer", ...(artifactId !== undefined && { artifactId }) });
    this.#writers.set(index, writer);
    return writer;
  }

  *#message({ id, content }: Some): Generator<AgentEvent, void, void> {
    for (const { type, text, name } of list(content)) {
      if (type === "tool_use" || type === "server_tool_use" || type === "mcp_tool_use")
        yield this.#turn.working(`Calling ${String(name).slice(0, 200)}`);
      if (type !== "text" || typeof text !== "string" || text === "" || this.#streamed.has(id)) continue;
      const writer = this.#turn.writer({ name: "answer" });
      yield* writer.write(wellFormed(text));
      yield* writer.end();
    }
  }
}

/** Ids of the tool results in a message. */
export function resultsIn(message: Some): readonly string[] {
  if (message["type"] !== "user" || typeof message["parent_tool_use_id"] === "string") return [];
  const results = list(some(message["message"])["content"]).filter(({ type }) => type === "tool_result");
  return results.map((result) => String(result["tool_use_id"]));
}

const faults: Readonly<Record<string, string>> = {
  error_max_turns: "The agent reached its turn limit",
  error_max_budget_usd: "The agent reached its budget",
  error_max_structured_output_retries: "The answer does not match the expected schema",
  error_during_execution: "The agent failed",
};

/** Ends a turn with success, or with a failure whose text reveals nothing about the server. `settle` sets the state of the conversation. */
export function* outcome(turn: Turn, result: Some | undefined, settle: () => void): Generator<AgentEvent, void, void> {
  const fail = (said: string, of?: JsonObject): AgentEvent => {
    settle();
    return failed(turn, said, of);
  };
  if (result === undefined) return yield fail("The agent ended without an answer");
  const { subtype, is_error: isError, stop_reason: reason, structured_output: output } = result;
  const { input_tokens: input, output_tokens: tokens } = some(result["usage"]);
  const metadata: JsonObject = {
    "gen_ai.response.finish_reasons": [typeof reason === "string" ? reason : String(subtype)],
    ...(typeof input === "number" && { "gen_ai.usage.input_tokens": input }),
    ...(typeof tokens === "number" && { "gen_ai.usage.output_tokens": tokens }),
  };
  if (subtype !== "success" || isError === true) {
    // The SDK's text may contain keys and paths, so it goes to the log, not to the caller.
    const { errors, result: said, terminal_reason: why } = result;
    turn.logger.error("Claude failed", { subtype, reason: why, errors: errors ?? said });
    return yield fail(faults[String(subtype)] ?? "The model failed", metadata);
  }
  if (reason === "refusal") return yield fail("The model's provider withheld the answer", metadata);
  if (output !== undefined) yield turn.artifact({ name: "answer", parts: [data(toPlainJson(output))] });
  yield* succeeded(turn, reason === "max_tokens" ? isCut : undefined, metadata, settle);
}

import type { JsonObject } from "@parley/a2a/model";
import type { AgentYield, MessageRefused } from "@parley/a2a/internal/protocol/index";
import { line, plain } from "@parley/a2a/protocol";
import { stranger } from "../server/skills.ts";
import {
  McpToolError,
  type ElicitAnswer,
  type HeldTool,
  type McpCall,
  type McpClient,
  type McpResult,
  type McpTool,
  type McpTools,
  type McpToolsOptions,
  type ModelTool,
  type ToolTurn,
} from "./port.ts";
import { answerIn, questionFor } from "./questions.ts";
import { bytesOf, digestOf, isObject, jsonOf, resultOf } from "./reading.ts";

/**
 * Lists the tools of an MCP server for a turn. Calls of the tools are steps of the turn.
 *
 * @param client - A `Client` of the MCP SDK, or a server of `mcpPool()`.
 * @throws McpToolError if the server fails to list its tools; TypeError for `pins` without a server name.
 *
 * @example
 * ```ts
 * const pool = mcpPool({ servers: { workshop: { command: "workshop-mcp" } } });
 * const tools = await mcpTools(turn, pool.server("workshop"));
 * const scan = yield* tools.call("scan", "scan_vehicle_for_error_codes", { vehicle_id: "XYZ123" });
 * ```
 */
export async function mcpTools(turn: ToolTurn, client: McpClient, options: McpToolsOptions = {}): Promise<McpTools> {
  if (options.pins !== undefined && (options.server ?? client.name) === undefined)
    throw new TypeError("pins need the option server, because a server may change the name that it reports");
  // The timeout applies to one page, the signal to all pages.
  const signal = AbortSignal.any([turn.signal, AbortSignal.timeout(listMs)]);
  const listed = await client.listTools(undefined, { signal, timeout: listMs }).catch((error: unknown) => {
    throw new McpToolError(`Failed to list the tools of ${nameOf(client, options)}: ${reasonOf(error)}`, {
      cause: error,
    });
  });
  const server = nameOf(client, options);
  const { maxTools = 128 } = options;
  const offered = listed.tools.filter(isTool).filter(({ name }) => options.allow?.includes(name) ?? true);
  const tools = new Map<string, Offered>();
  const held: HeldTool[] = [];
  for (const tool of offered.slice(0, maxTools)) {
    const problem = tools.has(tool.name) ? { reason: "it is listed twice" } : await problemOf(server, tool, options);
    if (problem === undefined) tools.set(tool.name, offer(tool, options));
    else held.push({ name: line(tool.name, 100), ...problem });
  }
  return new TurnTools(turn, client, { server, tools, held, omitted: Math.max(0, offered.length - maxTools), options });
}

/** Maximum time to list the tools. */
const listMs = 30_000;

interface Offered {
  readonly tool: McpTool;
  /** Whether the tool declares that a repeated call has no further effect. */
  readonly isRepeatable: boolean;
}

type ListedTool = JsonObject & { readonly name: string; readonly inputSchema: JsonObject };

function isTool(value: unknown): value is ListedTool {
  return isObject(value) && typeof value["name"] === "string" && isObject(value["inputSchema"]);
}

/** Why a tool is withheld. `undefined` if it is offered. */
async function problemOf(
  server: string,
  tool: ListedTool,
  { pins, maxSchemaBytes = 16 << 10 }: McpToolsOptions,
): Promise<Omit<HeldTool, "name"> | undefined> {
  if (!/^[\w./-]{1,128}$/.test(tool.name)) return { reason: "its name is not valid" };
  const size = bytesOf(tool.inputSchema);
  if (size === Infinity) return { reason: "its schema is nested too deeply" };
  if (size > maxSchemaBytes) return { reason: `its schema has ${size} bytes; at most ${maxSchemaBytes} are accepted` };
  if (!isSafe(withSafeTexts(tool.inputSchema))) return { reason: "its schema has invisible characters" };
  if (pins === undefined) return undefined;
  const digest = await digestOf(tool).catch(() => undefined);
  if (digest === undefined) return { reason: "its description or schema has no canonical form" };
  const pinned = await pins.pin(server, tool.name, digest);
  return pinned === digest ? undefined : { reason: "its description or schema changed after it was approved", digest };
}

function offer(tool: ListedTool, { maxDescriptionBytes = 1024 }: McpToolsOptions): Offered {
  const { name, description, inputSchema, annotations } = tool;
  const said = stranger(typeof description === "string" ? description : name, maxDescriptionBytes, "tool");
  const hints = isObject(annotations) ? annotations : {};
  const isRepeatable = hints["readOnlyHint"] === true || hints["idempotentHint"] === true;
  return { tool: { name, description: said, inputSchema: withSafeTexts(inputSchema) }, isRepeatable };
}

/** A schema with sanitized texts. Names and values are unchanged, because calls need them. */
function withSafeTexts(schema: JsonObject): JsonObject {
  const texts = new Set(["title", "description", "$comment"]);
  const made: unknown = JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    texts.has(key) && typeof value === "string" ? plain(value) : value,
  );
  return isObject(made) ? made : {};
}

function isSafe(schema: JsonObject): boolean {
  const text = JSON.stringify(schema);
  return plain(text) === text;
}

function nameOf(client: McpClient, { server }: McpToolsOptions): string {
  return line(server ?? client.name ?? client.getServerVersion()?.name ?? "the MCP server", 100);
}

export function reasonOf(error: unknown): string {
  return line(error instanceof Error ? error.message : String(error), 300);
}

/** The stored outcome of one round of a call. */
type Round =
  | { readonly kind: "result"; readonly result: JsonObject }
  | { readonly kind: "ask"; readonly requests: JsonObject; readonly state: string; readonly legacy: boolean };

interface Served {
  readonly server: string;
  readonly tools: ReadonlyMap<string, Offered>;
  readonly held: readonly HeldTool[];
  readonly omitted: number;
  readonly options: McpToolsOptions;
}

/** Maximum number of rounds of questions in one call, and of questions in one round. */
const maxRounds = 8;

const maxShown = 100;

/** Maximum bytes of a stored result, below the limit of a step. */
const maxStoredBytes = 200 << 10;

class TurnTools implements McpTools {
  readonly held: readonly HeldTool[];
  readonly omitted: number;
  readonly #turn: ToolTurn;
  readonly #client: McpClient;
  readonly #served: Served;
  #question: MessageRefused | undefined;
  #owner: Promise<string> | undefined;

  constructor(turn: ToolTurn, client: McpClient, served: Served) {
    this.#turn = turn;
    this.#client = client;
    this.#served = served;
    this.held = served.held;
    this.omitted = served.omitted;
  }

  get tools(): readonly McpTool[] {
    return [...this.#served.tools.values()].map(({ tool }) => tool);
  }

  get question(): MessageRefused | undefined {
    return this.#question;
  }

  async *call(id: string, name: string, args: JsonObject = {}): AsyncGenerator<AgentYield, McpResult, void> {
    let wake = (): void => undefined;
    let said: string | undefined;
    let shown = 0;
    let result: McpResult | undefined;
    let failure: { readonly error: unknown } | undefined;
    const done = this.#call(id, name, args, (message) => {
      said = message;
      wake();
    })
      .then((value) => (result = value))
      .catch((error: unknown) => (failure = { error }))
      .finally(() => wake());
    while (result === undefined && failure === undefined) {
      // A slow reader sees only the newest progress.
      const message = said;
      said = undefined;
      if (message !== undefined && (shown += 1) <= maxShown) yield this.#turn.working(message);
      else if (message === undefined) await Promise.race([done, new Promise<void>((resolve) => (wake = resolve))]);
    }
    if (failure !== undefined) throw failure.error;
    return result ?? (await this.run(id, name, args));
  }

  run(id: string, name: string, args: JsonObject = {}): Promise<McpResult> {
    return this.#call(id, name, args, () => undefined);
  }

  forModel(): Readonly<Record<string, ModelTool>> {
    const made = this.tools.map(({ name, description, inputSchema }): [string, ModelTool] => [
      name,
      { description, inputSchema, execute: (args, { toolCallId }) => this.run(toolCallId, name, args) },
    ]);
    return Object.fromEntries(made);
  }

  /** Calls a tool, and continues the call after each question. */
  async #call(id: string, name: string, args: JsonObject, show: (text: string) => void): Promise<McpResult> {
    const { tools, held, options } = this.#served;
    const offered = tools.get(name);
    if (offered === undefined) {
      const why = held.find((each) => each.name === name)?.reason ?? "the server has no such tool";
      throw new McpToolError(`Cannot call ${line(name, 100)}: ${why}`);
    }
    const answers: {
      readonly state: string;
      readonly legacy: boolean;
      readonly given: Record<string, ElicitAnswer>;
    }[] = [];
    for (let number = 0; number < maxRounds; number += 1) {
      const step = `mcp ${id} ${number}`;
      const round = await this.#turn.step(
        step,
        (call) => {
          if (call.uncertain && options.onUncertain === "refuse" && !offered.isRepeatable) {
            throw new McpToolError(`${name} may already have run before the process ended; it is not called again`);
          }
          return this.#round({ tool: offered.tool, args, key: call.key, signal: call.signal, answers, show });
        },
        { scope: "task" },
      );
      if (round.kind === "result") return resultOf(round.result, this.#maxResult());
      const given: [string, ElicitAnswer][] = [];
      for (const [key, request] of Object.entries(round.requests)) {
        given.push([key, await this.#answered(`${step} ${key}`, request)]);
      }
      answers.push({ given: Object.fromEntries(given), state: round.state, legacy: round.legacy });
    }
    throw new McpToolError(`${name} asked more than ${maxRounds} times`);
  }

  #maxResult(): number {
    return Math.min(this.#served.options.maxResultBytes ?? 64 << 10, maxStoredBytes);
  }

  /** One request to the server. */
  async #round(of: {
    readonly tool: McpTool;
    readonly args: JsonObject;
    readonly key: string;
    readonly signal: AbortSignal;
    readonly answers: readonly {
      readonly state: string;
      readonly legacy: boolean;
      readonly given: Record<string, ElicitAnswer>;
    }[];
    show(text: string): void;
  }): Promise<Round> {
    const { name, inputSchema } = of.tool;
    const last = of.answers.at(-1);
    const asked: unknown[] = [];
    // A 2025-11-25 server repeats its questions from the start, so it gets the stored answers in order.
    const known = of.answers.filter(({ legacy }) => legacy).flatMap(({ given }) => Object.values(given));
    const stop = new AbortController();
    const onElicit = (request: unknown): ElicitAnswer => {
      const answer = known.shift();
      if (answer !== undefined) return answer;
      asked.push(request);
      stop.abort();
      return { action: "cancel" };
    };
    const continues = last !== undefined && !last.legacy;
    const params: McpCall = {
      name,
      arguments: { ...of.args },
      _meta: { "parley/idempotencyKey": of.key },
      ...(continues && { inputResponses: neverOf(last.given), requestState: last.state }),
    };
    try {
      const { timeoutMs = 300_000 } = this.#served.options;
      const result = await this.#client.callTool(params, {
        signal: AbortSignal.any([of.signal, stop.signal]),
        timeout: timeoutMs,
        allowInputRequired: true,
        toolDefinition: { name, inputSchema: { ...inputSchema, type: "object" } },
        onprogress: ({ message }) => {
          if (typeof message === "string") of.show(`${name}: ${line(message, 500)}`);
        },
        onElicit,
      });
      if (asked.length === 0) return this.#read(name, result);
    } catch (error) {
      if (asked.length === 0) {
        if (of.signal.aborted || error instanceof McpToolError) throw error;
        throw new McpToolError(`${name} of ${this.#served.server} failed: ${reasonOf(error)}`, { cause: error });
      }
    }
    return this.#ask(name, { requests: { elicit: jsonOf(asked[0]) ?? null }, state: "", legacy: true });
  }

  /** Stores the questions of a round, if they fit into the task. */
  #ask(
    name: string,
    round: { readonly requests: JsonObject; readonly state: string; readonly legacy: boolean },
  ): Round {
    const keys = Object.keys(round.requests);
    if (keys.length > maxRounds || keys.some((key) => bytesOf(key) > 100) || bytesOf(round) > maxStoredBytes)
      throw new McpToolError(
        `${name} of ${this.#served.server} asked too many questions, or questions that are too long`,
      );
    return { kind: "ask", ...round };
  }

  #read(name: string, result: unknown): Round {
    if (isObject(result) && result["resultType"] === "input_required") {
      const { inputRequests, requestState } = result;
      if (!isObject(inputRequests)) throw new McpToolError("A tool asked for input without a question");
      const state = typeof requestState === "string" ? requestState : "";
      return this.#ask(name, { requests: inputRequests, state, legacy: false });
    }
    const { text: _, ...kept } = resultOf(result, this.#maxResult());
    return { kind: "result", result: { ...kept } };
  }

  /** The answer to a question, from the message of this turn or from an earlier turn. If there is no answer, throws the question. */
  async #answered(step: string, request: unknown): Promise<ElicitAnswer> {
    const { server } = this.#served;
    const question = questionFor(server, request);
    if (question === undefined)
      throw new McpToolError(
        `${server} asked for something that is not allowed, such as sampling or a link without https`,
      );
    const scope = "task";
    const askedIn = await this.#turn.step(`${step} asked`, () => this.#turn.number, { scope });
    try {
      const stored = await this.#turn.step(`${step} answer`, () => this.#answerNow(step, askedIn, request, question), {
        scope,
      });
      return stored.action === "accept" ? { action: "accept", content: stored.content } : { action: "cancel" };
    } catch (error) {
      if (error === question) this.#question = question;
      throw error;
    }
  }

  async #answerNow(
    step: string,
    askedIn: number,
    request: unknown,
    question: MessageRefused,
  ): Promise<{ action: "accept" | "cancel"; content: Record<string, string | number | boolean> }> {
    const { message, number } = this.#turn;
    const answer = askedIn === number ? undefined : answerIn(message, request);
    if (answer === undefined) throw question;
    // A message answers only one question.
    this.#owner ??= this.#turn.step(`mcp-answers ${number}`, () => step, { scope: "task" });
    if ((await this.#owner) !== step) throw question;
    return { action: answer.action, content: answer.action === "accept" ? (answer.content ?? {}) : {} };
  }
}

/** Casts answers, because their types differ between the two SDK packages. */
function neverOf(given: Record<string, ElicitAnswer>): Record<string, never> {
  return given as unknown as Record<string, never>;
}

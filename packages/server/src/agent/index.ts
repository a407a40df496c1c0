import { meantBy } from "@parley/a2a/internal/model/options";
import {
  A2AError,
  agentCardSchema,
  check,
  checkOptions,
  type FieldViolation,
  type OptionNames,
} from "@parley/a2a/internal/model/index";
import type {
  Agent,
  AgentBehaviour,
  AgentDescription,
  AgentOutput,
  AgentTypes,
  AnyExtension,
  Turn,
} from "@parley/a2a/internal/protocol/index";
import { AuthorTurn } from "./turn.ts";

/** Options of `defineAgent()`: the content of the card, behaviour, and the agent's function. */
export interface AgentDefinition<Types = object, Extensions extends readonly AnyExtension[] = readonly AnyExtension[]>
  extends AgentDescription, Omit<AgentBehaviour, "extensions"> {
  /** Extensions that this agent implements (A2A 1.0 §4.6). Its card declares them; its turns read them with `turn.ext()`. Default: none. */
  readonly extensions?: Extensions;
  /**
   * Called for each message. An async generator yields events; when it ends, the task is completed. A `turn.reply(…)` that is returned before
   * any other event is a direct reply, without a task. An error fails the task: the client gets a general sentence, the log the error.
   */
  onMessage(turn: Turn<Types>): AgentOutput;
}

/** If an agent lists extensions but its type arguments have none, the listed extensions determine the type of `turn.ext()`. */
type WithAnyExtension<Types> = Types extends { readonly extensions: unknown }
  ? Types
  : Types & { readonly extensions: readonly AnyExtension[] };

/** The names of the options. */
export const agentOptions: OptionNames<AgentDefinition & { readonly security?: never }> = {
  capabilities: 1,
  defaultInputModes: 1,
  defaultOutputModes: 1,
  description: 1,
  documentationUrl: 1,
  extensions: 1,
  iconUrl: 1,
  idleTimeout: 1,
  keepClaims: 1,
  mayReplyDirectly: 1,
  mirrorArtifactText: 1,
  name: 1,
  onMessage: 1,
  provider: 1,
  requestHeaders: 1,
  resumable: 1,
  securityRequirements: 1,
  securitySchemes: 1,
  skills: 1,
  turnTimeout: 1,
  version: 1,
  // The server rejects this old name, and suggests the current one.
  security: 1,
};

/**
 * Defines an agent.
 *
 * @typeParam Types - The types of its stored values, each optional: `defineAgent<{ state: Cart; context: User; checkpoint: number }>({ … })`.
 * Stored values are not checked on reads: if you change a type, old values still have the old type. The agent may also list `extensions`.
 * `turn.ext()` then takes any extension, or only the extensions of the type argument: `extensions: [typeof timestamp]`.
 *
 * @throws A2AError `InvalidParams` if a required member of the card is missing or invalid (A2A 1.0 §4.4.1).
 *
 * @example
 * ```ts
 * const agent = defineAgent({
 *   name: "Echo",
 *   description: "Repeats what it is told.",
 *   version: "1.0.0",
 *   skills: [{ id: "echo", name: "Echo", description: "Repeats a message", tags: ["test"] }],
 *   async *onMessage(turn) {
 *     if (turn.text === "") return turn.reply("Say something.");
 *     yield turn.artifact({ name: "echo", parts: [text(turn.text)] });
 *   },
 * });
 * ```
 */
export function defineAgent<const Extensions extends readonly AnyExtension[]>(
  definition: AgentDefinition<{ readonly extensions: Extensions }, Extensions> & { readonly extensions: Extensions },
): Agent;
export function defineAgent<Types extends AgentTypes<Types>>(
  definition: AgentDefinition<WithAnyExtension<Types>> & { readonly extensions: readonly AnyExtension[] },
): Agent;
export function defineAgent<Types extends AgentTypes<Types> = object>(definition: AgentDefinition<Types>): Agent;
export function defineAgent<Types extends AgentTypes<Types> = object>(definition: AgentDefinition<Types>): Agent {
  checkOptions("defineAgent()", definition, agentOptions, meantBy);
  const { onMessage, ...rest } = definition;
  const fields = [
    ...cardProblems(rest),
    ...(["idleTimeout", "turnTimeout"] as const)
      .filter((field) => typeof (rest[field] || 0) !== "number")
      .map((field) => ({ field, description: "must be a number of milliseconds, or false" })),
    ...(rest.extensions === undefined || Array.isArray(rest.extensions)
      ? []
      : [{ field: "extensions", description: "must be a list, such as [timestamp]" }]),
    ...(typeof onMessage === "function" ? [] : [{ field: "onMessage", description: "must be a function" }]),
  ];
  if (fields.length > 0) {
    const list = fields.map((violation) => `${violation.field} ${violation.description}`).join(", ");
    throw new A2AError("InvalidParams", `The agent is not valid: ${list}`, { fields });
  }
  return Object.freeze({
    ...rest,
    execute: (turn) => onMessage.call(definition, new AuthorTurn(turn) as Turn as Turn<Types>),
  } satisfies Agent);
}

/** The violations for which clients would reject the agent's card. Its addresses are placeholders, because the server adds them. */
function cardProblems(description: AgentDescription): readonly FieldViolation[] {
  const { capabilities = {}, defaultInputModes = [], defaultOutputModes = [] } = description;
  const supportedInterfaces = [{ url: "http://localhost", protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
  const card = { ...description, capabilities, defaultInputModes, defaultOutputModes, supportedInterfaces };
  const checked = check(agentCardSchema, card, "copy");
  return checked.ok ? [] : checked.violations;
}

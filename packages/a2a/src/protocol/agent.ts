import type {
  AgentCapabilities,
  AgentProvider,
  AgentSkill,
  SecurityRequirement,
  SecurityScheme,
} from "../model/index.ts";
import type { AgentEvent, AgentYield } from "./agent-event.ts";
import type { AnyExtension } from "./extension.ts";
import type { TurnBase } from "./turn.ts";

/* The type of an agent: a description for its card, a behaviour, and a function from a turn to events. */

/** The agent's own part of its card (A2A 1.0 §4.4.1). The host adds the rest, such as addresses. */
export interface AgentDescription {
  /** Name for people. */
  readonly name: string;
  /** What the agent does, for people and for models that choose an agent. */
  readonly description: string;
  /** Version of the agent, such as `1.0.0`. */
  readonly version: string;
  /** The skills of the agent. May be empty. */
  readonly skills: readonly AgentSkill[];
  /** The organization that offers it. */
  readonly provider?: AgentProvider;
  /** Address of its documentation. */
  readonly documentationUrl?: string;
  /** Address of an icon. */
  readonly iconUrl?: string;
  /** Media types that it reads. `*` and `type/*` match any. Messages with other types are rejected. Default `["text/plain"]`. */
  readonly defaultInputModes?: readonly string[];
  /** Media types that it writes. Default `["text/plain"]`. */
  readonly defaultOutputModes?: readonly string[];
  /** Optional operations that it supports. Default: only streaming. */
  readonly capabilities?: OwnCapabilities;
  /** Ways to authenticate that its card lists in addition to the host's. */
  readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>;
  /** Authentication that a caller needs. Default: the requirements of the host's authenticator. */
  readonly securityRequirements?: readonly SecurityRequirement[];
}

/** Capabilities that an agent may declare (A2A 1.0 §4.4.3). The server declares webhooks, if it delivers them. */
export interface OwnCapabilities extends Omit<AgentCapabilities, "pushNotifications"> {
  /** `false`: this agent has no webhooks, although the server delivers them. */
  readonly pushNotifications?: false;
}

/** Settings for running an agent. */
export interface AgentBehaviour {
  /** Whether it may answer with a direct reply, without a task. A task is then only created with the agent's first event. Default true. */
  readonly mayReplyDirectly?: boolean;
  /** Whether the server restarts a lost run with its checkpoint, such as after a crash. Default false: the task fails. */
  readonly resumable?: boolean;
  /**
   * Claims of the principal that are stored in plain text with its messages, for turns that start without their request (queued or resumed).
   * Default: none. Subject, organization and scopes are always stored.
   */
  readonly keepClaims?: readonly string[];
  /**
   * Request headers that turns read in `turn.headers`: `["x-request-id", { name: "accept-language", store: true }]`. Default:
   * none. Headers with `store` are stored in plain text with the message; queued or resumed turns have only these. Over gRPC they
   * are metadata. Together their values may take 8 KiB. Names of credentials and of A2A itself are invalid.
   */
  readonly requestHeaders?: readonly (string | { readonly name: string; readonly store?: boolean })[];
  /**
   * Maximum time between two events of a turn, in milliseconds; after that, the task fails. `false`: no limit. Default 5 minutes. Time does not count
   * while the turn waits for another agent (`turn.delegate()`), or the task waits for its user.
   */
  readonly idleTimeout?: number | false;
  /** Extensions that this agent implements (A2A 1.0 §4.6): its card declares them, and `turn.ext()` reads them. Default: none. */
  readonly extensions?: readonly AnyExtension[];
  /**
   * Whether the final status of a task that completes without a message repeats the text of the turn's artifacts (up to 256 KiB), for front
   * ends that show no artifacts. Default false.
   */
  readonly mirrorArtifactText?: boolean;
  /** Maximum duration of a turn, in milliseconds; after that, the task fails. `false`: no limit. Default 1 hour. */
  readonly turnTimeout?: number | false;
}

/** An agent for a host: its description, its behaviour and its function. Created by `defineAgent()`. */
export interface Agent extends AgentDescription, AgentBehaviour {
  /** The function that is called for each message. */
  readonly execute: Executor;
}

/** The function that the engine calls for each message of an agent. */
export type Executor = (turn: TurnBase) => AgentOutput;

/** The result of an agent's function: a generator of events, a promise of one event, or one event. */
export type AgentOutput =
  | AsyncGenerator<AgentYield, AgentEvent | undefined | void, void>
  | Promise<AgentEvent | undefined | void>
  | AgentEvent
  | undefined
  | void;

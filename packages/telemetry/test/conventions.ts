import { SpanKind, type AttributeValue } from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";

/*
 * The rules of the conventions for our attributes, in our words.
 *
 * - `a2a.*`: semantic-conventions-genai, pull request 195, head 842a839: `model/a2a/{registry,common,spans}.yaml`, `docs/gen-ai/a2a.md`.
 * - `gen_ai.*`: semantic-conventions-genai v0.1.0: `model/gen-ai/{registry,spans}.yaml`, `docs/gen-ai/{gen-ai-agent-spans,execute-tool}.md`.
 * - the rest: semantic-conventions 1.45.0, the registry of attributes.
 */

type Type = "string" | "string[]" | "number";

const operations = [
  "SendMessage",
  "SendStreamingMessage",
  "GetTask",
  "ListTasks",
  "CancelTask",
  "SubscribeToTask",
  "CreateTaskPushNotificationConfig",
  "GetTaskPushNotificationConfig",
  "ListTaskPushNotificationConfigs",
  "DeleteTaskPushNotificationConfig",
  "GetExtendedAgentCard",
];
const states = [
  "SUBMITTED",
  "WORKING",
  "INPUT_REQUIRED",
  "COMPLETED",
  "CANCELED",
  "FAILED",
  "REJECTED",
  "AUTH_REQUIRED",
];

interface Rule {
  readonly type: Type;
  readonly values?: readonly string[];
}

const text: Rule = { type: "string" };
const number: Rule = { type: "number" };

/** Group `a2a.protocol.attributes` of `model/a2a/common.yaml`, and the agent of its card in `model/a2a/spans.yaml`. */
const protocol = {
  "a2a.method.name": { type: "string", values: operations },
  "a2a.protocol.version": text,
  "a2a.tenant": text,
  "a2a.message.id": text,
  "a2a.message.reference_task_ids": { type: "string[]" },
  "a2a.task.id": text,
  "a2a.task.state": { type: "string", values: states.map((state) => `TASK_STATE_${state}`) },
  "gen_ai.conversation.id": text,
  "gen_ai.agent.name": text,
  "gen_ai.agent.description": text,
  "gen_ai.agent.version": text,
  "error.type": text,
} satisfies Record<string, Rule>;
/** `attributes.gen_ai.address_and_port`, `a2a.client.address_and_port.attributes`. */
const address = { "server.address": text, "server.port": number };
/** Groups `attributes.gen_ai.invoke_agent.common` and `attributes.gen_ai.content` of `model/gen-ai/spans.yaml`. */
const invokeAgent = {
  "gen_ai.operation.name": { type: "string", values: ["invoke_agent"] },
  "gen_ai.agent.name": text,
  "gen_ai.agent.description": text,
  "gen_ai.agent.version": text,
  "gen_ai.conversation.id": text,
  "gen_ai.input.messages": text,
  "gen_ai.output.messages": text,
  "error.type": text,
} satisfies Record<string, Rule>;
/** `session.id`, `user.id` of the general registry, and OpenInference's `openinference.span.kind` (spec/semantic_conventions.md). */
const session = {
  "session.id": text,
  "openinference.span.kind": { type: "string", values: ["AGENT", "TOOL"] },
} as const;
/** Custom attributes, and the task, which no convention puts on these spans. */
const own = { "a2a.task.id": text, "parley.turn": number, "parley.attempt": number };

interface SpanRule {
  readonly kind: SpanKind;
  readonly required: readonly string[];
  readonly attributes: Readonly<Record<string, Rule>>;
}

const turn: SpanRule = {
  kind: SpanKind.INTERNAL,
  required: ["gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.conversation.id", "session.id"],
  attributes: { ...invokeAgent, ...session, ...own, "user.id": text },
};
const delegation: SpanRule = {
  ...turn,
  kind: SpanKind.CLIENT,
  attributes: { ...invokeAgent, ...session, ...address },
};
const call: SpanRule = {
  kind: SpanKind.SERVER,
  required: ["a2a.method.name"],
  attributes: { ...protocol, ...address, "client.address": text, "client.port": number },
};
const request: SpanRule = { ...call, kind: SpanKind.CLIENT, attributes: { ...protocol, ...address } };
/** `gen_ai.execute_tool.internal`. */
const step: SpanRule = {
  kind: SpanKind.INTERNAL,
  required: ["gen_ai.operation.name", "gen_ai.tool.name"],
  attributes: {
    "gen_ai.operation.name": { type: "string", values: ["execute_tool"] },
    "gen_ai.tool.name": text,
    "gen_ai.tool.type": { type: "string", values: ["function", "extension", "datastore"] },
    "gen_ai.conversation.id": text,
    "error.type": text,
    ...session,
  },
};
/** No convention has it. */
const delivery: SpanRule = {
  kind: SpanKind.CLIENT,
  required: ["a2a.task.id", "parley.webhook.attempt"],
  attributes: {
    "a2a.task.id": text,
    "parley.webhook.attempt": number,
    "http.response.status_code": number,
    "error.type": text,
    ...address,
  },
};

function ruleOf({ name, kind }: ReadableSpan): SpanRule | undefined {
  if (operations.includes(name)) return kind === SpanKind.SERVER ? call : request;
  if (name.startsWith("invoke_agent ")) return kind === SpanKind.CLIENT ? delegation : turn;
  if (name.startsWith("execute_tool ")) return step;
  return name === "webhook delivery" ? delivery : undefined;
}

function typeOf(value: AttributeValue | undefined): string {
  return Array.isArray(value) ? "string[]" : typeof value;
}

/** Describes where a span violates the conventions. */
export function problemsOf(span: ReadableSpan): readonly string[] {
  const rule = ruleOf(span);
  if (rule === undefined) return [`${span.name}: no convention has such a span`];
  const { attributes, name } = span;
  const expected = attributes["a2a.method.name"] ?? namedBy(span);
  return [
    ...(rule.kind === span.kind ? [] : [`${name}: kind ${span.kind}`]),
    ...(expected === name ? [] : [`${name}: should be ${String(expected)}`]),
    ...rule.required.filter((key) => attributes[key] === undefined).map((key) => `${name}: no ${key}`),
    ...Object.entries(attributes).flatMap(([key, value]) => {
      const known = rule.attributes[key];
      if (known === undefined) return [`${name}: ${key} is not its attribute`];
      if (known.type !== typeOf(value)) return [`${name}: ${key} is ${typeOf(value)}`];
      return known.values === undefined || known.values.includes(String(value))
        ? []
        : [`${name}: ${key} is ${String(value)}`];
    }),
  ];
}

/** "Span name SHOULD be `{gen_ai.operation.name} {gen_ai.agent.name}`", and the name of the tool. */
function namedBy({ name, attributes }: ReadableSpan): string {
  const operation = attributes["gen_ai.operation.name"];
  if (operation === undefined) return name;
  return `${String(operation)} ${String(attributes["gen_ai.tool.name"] ?? attributes["gen_ai.agent.name"])}`;
}

/**
 * The kind that Phoenix gives a span from OTLP (`phoenix/trace/gen_ai/conversion.py` of 20.26.1): `openinference.*` wins, then the
 * operation, then the attributes of a tool or a model.
 */
export function phoenixKindOf({ attributes }: ReadableSpan): string | undefined {
  const given = attributes["openinference.span.kind"];
  if (given !== undefined) return String(given);
  const kinds: Readonly<Record<string, string>> = {
    invoke_agent: "AGENT",
    create_agent: "AGENT",
    execute_tool: "TOOL",
    chat: "LLM",
    text_completion: "LLM",
    generate_content: "LLM",
  };
  const operation = attributes["gen_ai.operation.name"];
  if (operation !== undefined) return kinds[String(operation)];
  if (attributes["gen_ai.tool.name"] !== undefined) return "TOOL";
  const isOfModel = ["gen_ai.request.model", "gen_ai.input.messages", "gen_ai.output.messages"];
  return isOfModel.some((key) => attributes[key] !== undefined) ? "LLM" : undefined;
}

/** The session that Phoenix puts a span into. */
export function phoenixSessionOf({ attributes }: ReadableSpan): unknown {
  return attributes["session.id"] ?? attributes["gen_ai.conversation.id"];
}

/** The type that Langfuse's server gives a span (`ObservationTypeMapper.ts`): the first that matches. */
export function langfuseTypeOf({ attributes }: ReadableSpan): string {
  const given = attributes["openinference.span.kind"];
  if (given !== undefined) return String(given);
  const operation = attributes["gen_ai.operation.name"];
  if (operation === "invoke_agent" || operation === "create_agent") return "AGENT";
  if (operation === "execute_tool" || attributes["gen_ai.tool.name"] !== undefined) return "TOOL";
  return attributes["gen_ai.request.model"] === undefined ? "SPAN" : "GENERATION";
}

import { partsOf, type Content, type JsonObject, type JsonValue, type TaskState } from "../model/index.ts";
import type { AgentEvent, ArtifactInit, ArtifactWriter, Turn, TurnBase, WriterOptions } from "../protocol/index.ts";
import { createWriter, streamText } from "./writer.ts";

interface StatusOptions {
  readonly keep?: boolean;
  readonly metadata?: JsonObject;
}

function status(state: TaskState, content?: Content, options?: StatusOptions): AgentEvent {
  return {
    kind: "status",
    state,
    ...(content === undefined ? {} : { message: { parts: partsOf(content) } }),
    ...(options?.metadata === undefined ? {} : { metadata: options.metadata }),
    ...(options?.keep === undefined ? {} : { keep: options.keep }),
  };
}

const builders = {
  reply: (content) => ({ kind: "reply", message: { parts: partsOf(content) } }),
  working: (content, options) => status("TASK_STATE_WORKING", content, options),
  inputRequired: (content, options) => status("TASK_STATE_INPUT_REQUIRED", content, options),
  authRequired: (content, options) => status("TASK_STATE_AUTH_REQUIRED", content, options),
  completed: (content) => status("TASK_STATE_COMPLETED", content),
  failed: (content) => status("TASK_STATE_FAILED", content),
  rejected: (content) => status("TASK_STATE_REJECTED", content),
  append: (artifactId, parts, options) => ({
    kind: "artifact",
    artifact: { artifactId, parts },
    append: true,
    ...(options?.last === true ? { lastChunk: true } : {}),
  }),
  saveCheckpoint: (value: JsonValue) => ({ kind: "checkpoint", value }),
} satisfies Partial<Turn>;

/** The builders that need the turn itself. */
interface BoundBuilders {
  artifact(init: ArtifactInit): AgentEvent;
  writer(options?: WriterOptions): ArtifactWriter;
  stream(source: AsyncIterable<string>, options?: WriterOptions): AsyncGenerator<AgentEvent, void, void>;
}

/** A turn with the builders of the authoring API. The engine's own turn stays its prototype, so that its getters stay live. */
export function withBuilders(base: TurnBase): Turn {
  const bound: BoundBuilders = {
    artifact: ({ artifactId, ...rest }) => ({
      kind: "artifact",
      artifact: { artifactId: artifactId ?? base.makeId(), ...rest },
      lastChunk: true,
    }),
    writer: (options = {}) => createWriter(options.artifactId ?? base.makeId(), options, base.clock),
    stream: (source, options = {}) => streamText(source, options.artifactId ?? base.makeId(), options, base.clock),
  };
  return Object.assign(Object.create(base) as TurnBase, builders, bound);
}

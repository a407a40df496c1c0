import { elementsOf, insideOf, membersOf, objectOf, unescaped, withFirstMember } from "../../base/json-text.ts";
import {
  invalidParams,
  type FieldViolation,
  type Generation,
  type ListTasksResponse,
  type Task,
} from "../../model/index.ts";
import {
  isSend,
  type OperationName,
  type Operations,
  type Reply,
  type Span,
  type StreamItem,
  type TaskTimeline,
} from "../../protocol/index.ts";
import type { Shapes, JsonRpcCodec, RestCodec, RestRoute } from "../codec.ts";
import { isObject } from "../../model/schema.ts";

/**
 * The draft of A2A 1.1, which adds generations (§3.2.7 of the draft) to the wire format of 1.0. Used only if a caller requests it; no card lists it.
 */
export function draftOf(base: JsonRpcCodec & RestCodec): JsonRpcCodec & RestCodec {
  const { JSONRPC: jsonRpc, "HTTP+JSON": rest } = base.bindings;
  return {
    ...base,
    version: "1.1",
    shapes: { ...base.shapes, ...shapesOf(base.shapes) },
    bindings: {
      JSONRPC: { ...jsonRpc, ...shapesOf(jsonRpc) },
      "HTTP+JSON": { ...rest, ...shapesOf(rest), routes: rest.routes.map(withQuery) },
    },
  };
}

function withQuery(route: RestRoute): RestRoute {
  return route.operation === "GetTask"
    ? { ...route, query: { ...(route.query !== "texts" && route.query), currentGeneration: "integer" } }
    : route;
}

function shapesOf(
  base: Shapes,
): Pick<
  Shapes,
  | "decodeRequest"
  | "encodeRequest"
  | "responseOf"
  | "encodeResponse"
  | "responsePieces"
  | "eventOf"
  | "encodeEvent"
  | "eventPieces"
> {
  return {
    decodeRequest<Name extends OperationName>(operation: Name, value: unknown): Operations[Name]["request"] {
      const draft = draftIn(operation, value);
      return withDraft(operation, base.decodeRequest(operation, value), draft, (generation) => generation);
    },
    encodeRequest<Name extends OperationName>(operation: Name, request: Operations[Name]["request"]): unknown {
      const value = base.encodeRequest(operation, request) as Operations[Name]["request"];
      // An int64 is a string in ProtoJSON.
      return withDraft(operation, value, draftIn(operation, request), String);
    },
    responseOf(operation, reply) {
      const value = base.responseOf(operation, reply);
      return reply.generations === undefined ? value : generated(operation, value, reply.generations);
    },
    encodeResponse<Name extends OperationName>(operation: Name, reply: Reply<Operations[Name]["response"]>): string {
      const { generations } = reply;
      const timeline = timelineOf(reply);
      if (generations === undefined) return base.encodeResponse(operation, reply);
      if (timeline !== undefined)
        return spliced(withTimeline(base.encodeResponse(operation, reply), timeline), 1, firstOf(generations));
      const text = operation === "ListTasks" ? "" : base.encodeResponse(operation, reply);
      const only = onlyTask(operation, text);
      if (only !== undefined) return spliced(text, only, firstOf(generations));
      return JSON.stringify(generated(operation, base.responseOf(operation, reply), generations));
    },
    responsePieces(operation, reply) {
      const { generations } = reply;
      const timeline = timelineOf(reply);
      const pieces = base.responsePieces?.(operation, reply);
      if (pieces === undefined || generations === undefined) return pieces;
      // A task in pieces is large, so its artifacts are not read.
      if (timeline !== undefined) {
        const [first = "", second = "", ...rest] = pieces;
        const opened = withFirstMember(first + second, 0, "timeline", `[${timeline.entries.join(",")}]`);
        return [spliced(opened, 1, firstOf(generations)), ...rest];
      }
      const only = onlyTask(operation, pieces[0] ?? "");
      return only === undefined ? undefined : splicedPieces(pieces, only, firstOf(generations));
    },
    eventOf(item) {
      const value = base.eventOf(item) as Record<string, object>;
      const [name] = Object.keys(value);
      if (item.generation === undefined || name === undefined || name === "message") return value;
      return { [name]: { generation: String(item.generation), ...value[name] } };
    },
    encodeEvent: (item: StreamItem) => spliced(base.encodeEvent(item), 2, item.generation),
    eventPieces(item) {
      const pieces = base.eventPieces?.(item);
      return pieces && splicedPieces(pieces, 2, item.generation);
    },
  };
}

/** The timeline of an answer that no interceptor has changed. */
function timelineOf({ payload, timeline }: Reply<unknown>): TaskTimeline | undefined {
  return timeline?.payload === payload ? timeline : undefined;
}

/**
 * The text of a task with its timeline, and the generations of its artifacts (§3.2.8). gRPC has neither, because the field numbers are not
 * defined yet.
 */
function withTimeline(task: string, { entries, artifacts }: TaskTimeline): string {
  const members = membersOf(task);
  const listed = members.get("artifacts");
  if (listed !== undefined) {
    const spanned = elementsOf(listed).map((artifact) => {
      const id = membersOf(artifact).get("artifactId") ?? '""';
      const span = artifacts.get(unescaped(insideOf(id)));
      return span === undefined ? artifact : withSpan(artifact, span);
    });
    members.set("artifacts", `[${spanned.join(",")}]`);
  }
  members.set("timeline", `[${entries.join(",")}]`);
  return objectOf(members);
}

function withSpan(artifact: string, { start, end }: Span): string {
  const ended = end === undefined ? artifact : withFirstMember(artifact, 0, "endGeneration", `"${end}"`);
  return withFirstMember(ended, 0, "startGeneration", `"${start}"`);
}

/** The generation in a request. Read before the other members, because the shapes of 1.0 remove unknown members. */
function draftIn(operation: OperationName, value: unknown): number | undefined {
  if (operation === "GetTask") return int64Of(memberOf(value, "currentGeneration"), "currentGeneration");
  if (!isSend(operation, value)) return undefined;
  const configuration = memberOf(value, "configuration");
  return int64Of(memberOf(configuration, "ifGenerationMatch"), "configuration.ifGenerationMatch");
}

function withDraft<Name extends OperationName>(
  operation: Name,
  request: Operations[Name]["request"],
  generation: number | undefined,
  write: (generation: number) => unknown,
): Operations[Name]["request"] {
  if (generation === undefined) return request;
  const written = write(generation);
  if (!isSend(operation, request)) return Object.assign({}, request, { currentGeneration: written });
  const { configuration } = request;
  return Object.assign({}, request, { configuration: { ifGenerationMatch: written, ...configuration } });
}

function memberOf(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

/** An int64 in ProtoJSON, a string or a number. */
function int64Of(value: unknown, field: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  const number = typeof value === "string" && /^-?\d+$/.test(value) ? Number(value) : value;
  if (typeof number === "number" && Number.isSafeInteger(number)) return number;
  const violation: FieldViolation = { field, description: "must be an integer" };
  throw invalidParams([violation]);
}

function generated(operation: OperationName, value: unknown, generations: ReadonlyMap<string, number>): unknown {
  const add = (task: Task): Task | (Generation & Task) => {
    const generation = generations.get(task.id);
    return generation === undefined ? task : { generation: String(generation), ...task };
  };
  if (operation === "ListTasks") {
    const { tasks, ...rest } = value as ListTasksResponse;
    return { tasks: tasks.map(add), ...rest };
  }
  if (operation !== "SendMessage") return add(value as Task);
  const { task, ...rest } = value as Operations["SendMessage"]["response"];
  return task === undefined ? rest : { task: add(task) };
}

/**
 * The depth of the only task in the text of an answer: 1 is the outermost object, 2 its only member. `undefined` if the text must be parsed,
 * because the answer is a list, or an interceptor replaced the task with a message.
 */
function onlyTask(operation: OperationName, text: string): 1 | 2 | undefined {
  if (operation === "ListTasks") return undefined;
  if (operation !== "SendMessage") return 1;
  return text.startsWith('{"task":') ? 2 : undefined;
}

function firstOf(generations: ReadonlyMap<string, number>): number | undefined {
  for (const generation of generations.values()) return generation;
  return undefined;
}

/** The text with the generation as the first member of the object at `depth`: 1 is the outermost, 2 its only member. */
function spliced(text: string, depth: 1 | 2, generation: number | undefined): string {
  if (generation === undefined || text.startsWith('{"message":')) return text;
  const brace = depth === 1 ? 0 : text.indexOf("{", 1);
  return withFirstMember(text, brace, "generation", `"${generation}"`);
}

/** Like `spliced`, for a text in pieces. The first two pieces contain both braces. */
function splicedPieces(
  [first = "", second = "", ...rest]: readonly string[],
  depth: 1 | 2,
  generation: number | undefined,
): readonly string[] {
  return [spliced(first + second, depth, generation), ...rest];
}

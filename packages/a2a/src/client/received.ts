import type {
  Artifact,
  ListTasksResponse,
  Message,
  SendMessageResponse,
  StreamResponse,
  Task,
  TaskArtifactUpdateEvent,
} from "../model/index.ts";
import type {
  AnyExtension,
  EventOf,
  Payload,
  StreamItem,
  StreamReply,
  UnaryName,
  UnaryOperations,
} from "../protocol/index.ts";
import type { ExtensionReader } from "../extensions/index.ts";

/* The types that a client with extensions receives: events, answers, tasks and messages with a method `ext()`, which reads extension values. */

/** The method that a client with extensions adds to events, answers, tasks, messages and artifacts. This member is not enumerable. */
export interface WithExtensions<E extends AnyExtension> {
  /**
   * The extension's values in this object, or the result of the extension's `onEvent` hook, if any.
   *
   * @returns `undefined` if the server did not activate the extension in this call. If the server does not report activated
   * extensions, the requested extensions of kind `data` count as active.
   */
  ext<X extends E>(extension: X): EventOf<X> | undefined;
}

interface ExtendedTask<E extends AnyExtension> extends Omit<Task, "artifacts">, WithExtensions<E> {
  readonly artifacts?: readonly (Artifact & WithExtensions<E>)[];
}

/** A task, for a client with these extensions. */
export type ReceivedTask<E extends AnyExtension = never> = [E] extends [never] ? Task : ExtendedTask<E>;

/** A page of tasks, for a client with these extensions. */
export type ReceivedList<E extends AnyExtension = never> = [E] extends [never]
  ? ListTasksResponse
  : Omit<ListTasksResponse, "tasks"> & { readonly tasks: readonly ExtendedTask<E>[] };

/** The member of an answer or an event, with `ext` if extensions can add data to it. */
type ReceivedMember<Member, E extends AnyExtension> = Member extends Task
  ? ExtendedTask<E>
  : Member extends Message
    ? Message & WithExtensions<E>
    : Member extends TaskArtifactUpdateEvent
      ? TaskArtifactUpdateEvent & { readonly artifact: WithExtensions<E> }
      : Member;

type ReceivedKind<Kind, E extends AnyExtension> = Kind extends unknown
  ? WithExtensions<E> & { readonly [Name in keyof Kind]: ReceivedMember<Kind[Name], E> }
  : never;

/** The answer of a send, for a client with these extensions. */
export type ReceivedAnswer<E extends AnyExtension = never> = [E] extends [never]
  ? SendMessageResponse
  : ReceivedKind<SendMessageResponse, E>;

/** An event, for a client with these extensions. */
export type ReceivedEvent<E extends AnyExtension = never> = [E] extends [never]
  ? StreamResponse
  : ReceivedKind<StreamResponse, E>;

/** The response of an operation, for a client with these extensions. */
export type ResponseTo<E extends AnyExtension, Name extends UnaryName> = Name extends "SendMessage"
  ? ReceivedAnswer<E>
  : Name extends "GetTask" | "CancelTask"
    ? ReceivedTask<E>
    : Name extends "ListTasks"
      ? ReceivedList<E>
      : UnaryOperations[Name]["response"];

type Ext = (extension: AnyExtension) => unknown;

/**
 * The `ext` method of an event, for the active extensions. An extension with `onEvent` reads the event now, because it may
 * store values. Other extensions read the event when `ext` is called.
 */
export function activatedIn(active: readonly ExtensionReader[], read: (reader: ExtensionReader) => unknown): Ext {
  const found = new Map<string, unknown>();
  for (const reader of active) {
    if (reader.extension.onEvent !== undefined) found.set(reader.extension.uri, read(reader));
  }
  return readWhenAsked(active, read, found);
}

/** Like `activatedIn`, but every extension reads only when `ext` is called. */
export function readWhenAsked(
  active: readonly ExtensionReader[],
  read: (reader: ExtensionReader) => unknown,
  found: Map<string, unknown> = new Map(),
): Ext {
  return ({ uri }) => {
    if (found.has(uri)) return found.get(uri);
    const reader = active.find(({ extension }) => extension.uri === uri);
    const value = reader && read(reader);
    found.set(uri, value);
    return value;
  };
}

type ReadArtifact = (task: Task, artifact: Artifact) => Ext;

/**
 * Adds `ext` to the value, its task, its message and its artifacts. Copies a frozen value, which an interceptor may have parsed.
 *
 * @param ofArtifact - Reads an artifact of a task. `ext` reads the artifact of an update.
 */
export function give<T extends object>(value: T, ext: Ext, ofArtifact: ReadArtifact): T {
  const { task, message, artifactUpdate } = value as Partial<StreamResponse>;
  const given = withMembers(value, {
    task: task && give(task, ext, ofArtifact),
    message: message && defined(message, ext),
    artifactUpdate: artifactUpdate && withMembers(artifactUpdate, { artifact: defined(artifactUpdate.artifact, ext) }),
    artifacts: artifactsOf(value)?.map((each) => defined(each, ofArtifact(value as Task & T, each))),
  });
  return defined(given, ext);
}

function artifactsOf(value: object): readonly Artifact[] | undefined {
  return "status" in value ? (value as Task).artifacts : undefined;
}

/** A copy of the value with these members, or the value itself if it already has them. */
function withMembers<T extends object>(value: T, members: object): T {
  const own = value as Readonly<Record<string, unknown>>;
  const changed = Object.entries(members).filter(
    ([name, member]) => member !== undefined && !isSame(own[name], member),
  );
  return changed.length === 0 ? value : { ...value, ...Object.fromEntries(changed) };
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || (Array.isArray(one) && Array.isArray(other) && one.every((each, at) => each === other[at]));
}

function defined<T extends object>(value: T, ext: Ext): T {
  const own = Object.isExtensible(value) ? value : { ...value };
  return Object.defineProperty(own, "ext", { value: ext, enumerable: false, configurable: true, writable: true });
}

/**
 * Reads each event of a stream's batches. If reading an event fails, the reader gets the earlier events, then the error, and the stream is closed.
 */
export function readingBatches(
  batches: StreamReply["batches"],
  read: (event: Payload<StreamResponse>) => Payload<StreamResponse>,
): StreamReply["batches"] {
  return {
    [Symbol.asyncIterator]() {
      const source = batches[Symbol.asyncIterator]();
      let broken: { readonly thrown: unknown } | undefined;
      return {
        async next() {
          if (broken !== undefined) throw broken.thrown;
          const result = await source.next();
          if (result.done === true) return result;
          const items: StreamItem[] = [];
          try {
            for (const item of result.value) {
              const payload = read(item.payload);
              items.push(payload === item.payload ? item : { ...item, payload });
            }
          } catch (thrown) {
            broken = { thrown };
            await source.return?.();
            if (items.length === 0) throw thrown;
          }
          return { done: false, value: items };
        },
        async return() {
          await source.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

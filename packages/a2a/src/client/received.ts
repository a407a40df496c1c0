import type { ListTasksResponse, Message, SendMessageResponse, StreamResponse, Task } from "../model/index.ts";
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

/* What a client with extensions gets: events, answers, tasks and messages that say what the extensions have put into them. */

/** What a client with extensions adds to an event, an answer, a task or a message. It is not enumerable: the JSON stays what it is. */
export interface WithExtensions<E extends AnyExtension> {
  /**
   * What an extension has put into it: what `onEvent` of the extension returned, or by default its values.
   *
   * @returns `undefined` where the server did not activate the extension in the call that this came with. A server that does not say what
   * it has activated is believed to have activated those of kind `data`.
   */
  ext<X extends E>(extension: X): EventOf<X> | undefined;
}

/** A task, for a client with these extensions. */
export type ReceivedTask<E extends AnyExtension = never> = [E] extends [never] ? Task : Task & WithExtensions<E>;

/** A page of tasks, for a client with these extensions. */
export type ReceivedList<E extends AnyExtension = never> = [E] extends [never]
  ? ListTasksResponse
  : Omit<ListTasksResponse, "tasks"> & { readonly tasks: readonly (Task & WithExtensions<E>)[] };

/** The members of an answer or an event that have the values of extensions themselves. */
interface ReceivedMembers<E extends AnyExtension> extends WithExtensions<E> {
  readonly task?: Task & WithExtensions<E>;
  readonly message?: Message & WithExtensions<E>;
}

/** The answer of a send, for a client with these extensions. */
export type ReceivedAnswer<E extends AnyExtension = never> = [E] extends [never]
  ? SendMessageResponse
  : SendMessageResponse & ReceivedMembers<E>;

/** An event, for a client with these extensions. */
export type ReceivedEvent<E extends AnyExtension = never> = [E] extends [never]
  ? StreamResponse
  : StreamResponse & ReceivedMembers<E>;

/** The response of an operation, for a client with these extensions. */
export type ResponseTo<E extends AnyExtension, Name extends UnaryName> = Name extends "SendMessage"
  ? ReceivedAnswer<E>
  : Name extends "GetTask" | "CancelTask"
    ? ReceivedTask<E>
    : Name extends "ListTasks"
      ? ReceivedList<E>
      : UnaryOperations[Name]["response"];

/** What `ext` of an event is. */
export type Ext = (extension: AnyExtension) => unknown;

/**
 * What `ext` of an event gives, for the extensions that were active. Those with `onEvent` read the event now, since they may keep what
 * they see; the others when they are asked.
 */
export function activatedIn(active: readonly ExtensionReader[], read: (reader: ExtensionReader) => unknown): Ext {
  const found = new Map<string, unknown>();
  for (const reader of active) {
    if (reader.extension.onEvent !== undefined) found.set(reader.extension.uri, read(reader));
  }
  return ({ uri }) => {
    if (found.has(uri)) return found.get(uri);
    const reader = active.find(({ extension }) => extension.uri === uri);
    const value = reader && read(reader);
    found.set(uri, value);
    return value;
  };
}

/** The value with `ext`, and so its task or its message. A frozen value is copied: an interceptor may have made it of text. */
export function give<T extends object>(value: T, ext: Ext): T {
  const { task, message } = value as { readonly task?: unknown; readonly message?: unknown };
  let given = value;
  for (const [name, member] of Object.entries({ task, message })) {
    if (typeof member !== "object" || member === null) continue;
    const own = defined(member, ext);
    if (own !== member) given = { ...given, [name]: own };
  }
  return defined(given, ext);
}

function defined<T extends object>(value: T, ext: Ext): T {
  const own = Object.isExtensible(value) ? value : { ...value };
  return Object.defineProperty(own, "ext", { value: ext, enumerable: false, configurable: true, writable: true });
}

/**
 * The batches of a stream, with each event read. Where reading one fails, the reader gets the events before it, then the error, and the
 * stream is closed.
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

import {
  inlineFilesExtension,
  TextPayload,
  type AgentService,
  type CallContext,
  type InlineFiles,
  type Payload,
  type Principal,
  type Reply,
  type StreamItem,
  type StreamName,
  type StreamOperations,
  type StreamReply,
  type UnaryName,
  type UnaryOperations,
} from "@parley/a2a/internal/protocol/index";
import type { Blobs } from "./blobs.ts";
import type { BlobStore } from "./port.ts";
import { type BlobOwner, BlobReader, mayHaveRefs, placeOf, refOf, splitRefs, unreadable } from "./ref.ts";

/* Files in answers and events, treated the same in all operations, bindings and versions. */

/** The service with links instead of references in its answers and events, or with the files themselves if the client requests them. */
export function withFiles(
  service: AgentService,
  blobs: Blobs,
  ownerOf: (principal: Principal) => BlobOwner,
): AgentService {
  const inlineFor = ({ extensions, streamsFiles, principal }: CallContext): InlineFiles | undefined =>
    streamsFiles === true && extensions.includes(inlineFilesExtension)
      ? inlineFiles(blobs, ownerOf(principal))
      : undefined;
  return {
    async call<Name extends UnaryName>(
      operation: Name,
      request: UnaryOperations[Name]["request"],
      context: CallContext,
    ): Promise<Reply<UnaryOperations[Name]["response"]>> {
      const reply = await service.call(operation, request, context);
      if (!hasRefs(reply.payload)) return reply;
      const inline = inlineFor(context);
      if (inline !== undefined) return { ...reply, inline };
      return { ...reply, payload: await linked(reply.payload, blobs, ownerOf(context.principal)) };
    },
    async stream<Name extends StreamName>(
      operation: Name,
      request: StreamOperations[Name]["request"],
      context: CallContext,
    ): Promise<StreamReply> {
      const reply = await service.stream(operation, request, context);
      const inline = inlineFor(context);
      if (inline !== undefined) return { ...reply, inline };
      const owner = ownerOf(context.principal);
      return { ...reply, batches: withLinkedItems(reply.batches, blobs, owner) };
    },
  };
}

/** Not a generator, because its `return()` would wait for the next event. */
function withLinkedItems(batches: StreamReply["batches"], blobs: Blobs, owner: BlobOwner): StreamReply["batches"] {
  const withLinks = async (item: StreamItem): Promise<StreamItem> =>
    hasRefs(item.payload) ? { ...item, payload: await linked(item.payload, blobs, owner) } : item;
  return {
    [Symbol.asyncIterator]() {
      const source = batches[Symbol.asyncIterator]();
      return {
        async next() {
          const result = await source.next();
          if (result.done === true || !result.value.some(({ payload }) => hasRefs(payload))) return result;
          try {
            return { done: false, value: await Promise.all(result.value.map(withLinks)) };
          } catch (error) {
            await source.return?.();
            throw error;
          }
        },
        async return() {
          await source.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

function textsOf(payload: Payload<unknown>): readonly string[] {
  return payload.pieces ?? [payload.json];
}

function hasRefs(payload: Payload<unknown>): boolean {
  return textsOf(payload).some(mayHaveRefs);
}

/** The payload with links instead of references. */
export async function linked<T>(payload: Payload<T>, blobs: Blobs, owner: BlobOwner): Promise<Payload<T>> {
  if (!hasRefs(payload)) return payload;
  const texts: string[] = [];
  for (const text of textsOf(payload)) texts.push(mayHaveRefs(text) ? await withLinks(text, blobs, owner) : text);
  const [only, ...others] = texts;
  return new TextPayload<T>(only !== undefined && others.length === 0 ? only : texts);
}

async function withLinks(text: string, blobs: Blobs, owner: BlobOwner): Promise<string> {
  const { refs, rest } = splitRefs(text);
  let made = "";
  for (const { before, member, url } of refs) {
    const ref = await blobs.owned(url, owner);
    const link = ref === undefined ? unreadable : await blobs.link(ref);
    made += `${before}"${member}":${JSON.stringify(link)}`;
  }
  return made + rest;
}

function inlineFiles(blobs: Blobs, owner: BlobOwner): InlineFiles {
  return {
    pieces: (text) => (mayHaveRefs(text) ? withBytes(text, blobs, () => owner) : undefined),
  };
}

/** Maps the member that has a URL to the member that has bytes, in all versions. */
const inlineMembers: Readonly<Record<string, string>> = { url: "raw", uri: "bytes", fileWithUri: "fileWithBytes" };

/** Inlines the files of an owner, whichever agent they belong to. */
function withBytesOf(text: string, blobs: BlobReader, owner: string): AsyncIterable<string> {
  return withBytes(text, blobs, (url) => ({ agent: placeOf(refOf(url)?.key ?? "")?.agent ?? "", owner }));
}

/** `ownerOf`: the owner whose file the URL may name. */
async function* withBytes(
  text: string,
  blobs: BlobReader,
  ownerOf: (url: string) => BlobOwner,
): AsyncGenerator<string, void, void> {
  const { refs, rest } = splitRefs(text);
  for (const { before, member, url } of refs) {
    const ref = await blobs.owned(url, ownerOf(url));
    // A missing file must not end the answer.
    const body = ref && (await blobs.open(ref));
    if (body === undefined) {
      yield `${before}"${member}":"${unreadable}"`;
      continue;
    }
    const bytes = body[Symbol.asyncIterator]();
    try {
      yield `${before}"${inlineMembers[member] ?? "raw"}":"`;
      yield* blobs.base64({ [Symbol.asyncIterator]: () => bytes });
      yield '"';
    } finally {
      await bytes.return?.();
    }
  }
  yield rest;
}

/**
 * Inlines external files in the pieces of an export (`exportOwner()` of `@parley/server/store`) while they are read. A missing file becomes
 * `about:blank#unavailable`.
 *
 * @example
 * ```ts
 * async function* exported(store: Store, files: BlobStore, owner: string) {
 *   yield* withBlobs(exportOwner(store, owner, ["/"]), files, owner);
 * }
 * ```
 */
export async function* withBlobs(
  pieces: AsyncIterable<string>,
  files: BlobStore,
  owner: string,
): AsyncGenerator<string, void, void> {
  const reader = new BlobReader(files);
  for await (const piece of pieces) {
    if (mayHaveRefs(piece)) yield* withBytesOf(piece, reader, owner);
    else yield piece;
  }
}

/**
 * Calls agents: `connect()`, resumable streams, conversations, and functions that reduce the events of a stream to a task or a text.
 */

import type { AgentCard } from "../model/index.ts";
import type { AnyExtension } from "../protocol/index.ts";
import { jsonRpcBinding, smallJsonRpcBinding } from "../transport/jsonrpc/client.ts";
import { restBinding } from "../transport/rest/client.ts";
import { codecV11, jsonRpcClientV1, wires } from "../wires.ts";
import { respelling, wrappingByKind, adapted, readCard, type CardDocuments, type OlderCard } from "./versions.ts";
import { Client } from "./client.ts";
import { assemble, checkBindings, type ConnectOptions } from "./connect.ts";
import { connectWith } from "./connect-with.ts";

/**
 * Connects to an agent of any version from 0.2.5 to 1.0. Fetches the agent's card if you pass a URL. Then chooses the interface with the
 * newest version that both sides support, and among these the first on the card (A2A 1.0 §8.3.2). If that interface does not answer,
 * the client uses the next interface. `Client.chosen` is the interface in use. No connection stays open.
 *
 * @param agent - Base URL of the agent (`https://example.com/weather`), URL of its card, or the card itself, in any version.
 * @throws A2AError `InvalidParams` if the URL is not valid, `InvalidResponse` if the card cannot be used, `ConnectionFailed`,
 * `ConnectionLost`, `Timeout` or `Aborted` if the card cannot be fetched, or the error of the server.
 *
 * @example
 * ```ts
 * const client = await connect("https://example.com/weather", { headers: { authorization: "Bearer …" } });
 * const { task, message } = await client.sendMessage("Will it rain?");
 * ```
 */
export async function connect<E extends string | AnyExtension = string>(
  agent: string | URL | AgentCard | OlderCard,
  options: ConnectOptions<E> = {},
): Promise<Client<Extract<E, AnyExtension>>> {
  checkBindings(options.bindings ?? []);
  const codecs = Object.values(wires);
  const documents: CardDocuments = new WeakMap();
  const spoken = [...codecs, codecV11].map((codec) => wrappingByKind(respelling(codec, documents), options.logger));
  const own = [jsonRpcBinding(spoken), restBinding(spoken)];
  const bindings = [...own, ...(options.bindings ?? [])].map((binding) => adapted(binding, codecs));
  const kit = {
    bindings,
    decodeCard: (value: unknown) => readCard(codecs, value),
    encodeCard: (card: AgentCard) => codecs.map((codec) => codec.encodeCard(card)),
    documentOf: (card: AgentCard) => documents.get(card),
  };
  return connectWith(kit, agent, { ...options, bindings: [] });
}

/**
 * `connect()` for JSON-RPC of version 1.0 only. Its bundle has half the size, for pages where each kilobyte counts. The client lacks
 * five features: `credentials`, `trust`, a faster way to decode chunks, a check of the results of interceptors, and a guard
 * around `observer`, so an error that the observer throws fails the call.
 */
export async function connectJsonRpc(
  agent: string | URL | AgentCard,
  options: Omit<ConnectOptions, "credentials" | "trust"> = {},
): Promise<Client> {
  const kit = { bindings: [smallJsonRpcBinding([jsonRpcClientV1])], decodeCard: jsonRpcClientV1.decodeCard };
  const parts = await assemble(kit, agent, options, (service, interceptors) =>
    interceptors.reduceRight((next, wrap) => wrap(next), service),
  );
  return new Client(parts);
}

export type { ClientKit, ConnectOptions } from "./connect.ts";
export { connectWith } from "./connect-with.ts";
export { Client } from "./client.ts";
export type { ClientParts, ExtensionClient, ExtensionClientOf, ExtOfClient, WaitOptions } from "./parts.ts";
export { download, type Downloadable, type DownloadClient, type DownloadOptions } from "./download.ts";
export { safeFileName } from "../files/content.ts";
export {
  type ByteStream,
  type FileContent,
  type FileFetch,
  answerAuthorization,
  readAuthorization,
  type AuthorizationAnswer,
  type AuthorizationRequest,
} from "../protocol/index.ts";
export type { CallOptions, MessageInit, SendInit, SendInput, SubscribeOptions } from "./requests.ts";
export type { ReceivedAnswer, ReceivedEvent, ReceivedList, ReceivedTask, WithExtensions } from "./received.ts";
export {
  Conversation,
  type ConversationClient,
  type ConversationInit,
  type PushClient,
  type UpdateListener,
  type Updates,
  type WebhookInbox,
} from "./conversation.ts";
export { collect, EventStream, TaskView } from "./stream.ts";
export type { TaskSnapshot, WatchedTask } from "./watch.ts";
export { GrowingText, readText, type TextPiece } from "./text.ts";
export { dataOf, type DataSource } from "../schema/data.ts";
export type { CachedCard, CardCache } from "./card.ts";
export type { OlderCard } from "./versions.ts";
export type { InterfaceChoice } from "./interfaces.ts";
export type { ResilientOptions, RetryPolicy } from "./retry.ts";
export { resilient } from "./resilient.ts";
// Re-exports that most callers of `connect()` need.
export { A2AError, data, file, hasCode, text } from "../model/index.ts";
export { jsonRpcBinding } from "../transport/jsonrpc/client.ts";
export { restBinding } from "../transport/rest/client.ts";
export type {
  AnswerHeaders,
  ClientBinding,
  ClientHost,
  ClientLimits,
  CredentialedRequest,
  FetchInit,
  FetchLike,
  HeadersRequest,
  HeadersSource,
  RequestCredentialing,
} from "../transport/client/binding.ts";

import type { LogFields } from "../../base/index.ts";
import { A2AError, invalidParams } from "../../model/index.ts";
import {
  isSend,
  resourceOf,
  type AgentService,
  type IncomingFiles,
  type OperationName,
  type Operations,
  type Principal,
  type Reply,
  type StreamName,
  type StreamReply,
  type UnaryName,
  type UnaryOperations,
  type UniversalRequest,
} from "../../protocol/index.ts";
import type { Codec, Shapes } from "../../wire/codec.ts";
import type { ServerHost } from "./binding.ts";
import { requestContext, type ServerContext } from "./context.ts";

/**
 * A request of a binding on its way to the service. `answerCall` calls the functions in this order. `Body` is the undecoded content.
 */
export interface ServerCall<Body, Answer> {
  /** The request, with headers, URL, and a signal that is aborted when the client disconnects. */
  readonly request: UniversalRequest;
  /** Throws for requests that are invalid for every caller, such as an unsupported HTTP method. */
  accept?(): void;
  /** The undecoded content of the request: text or bytes. Throws for an invalid URL or header. May set `files`. */
  body(principal: Principal): Body | Promise<Body>;
  /** The large files that were stored while the body was read. */
  readonly files?: IncomingFiles | undefined;
  /** Reads the content and returns the operation's request for `shapes` to decode. Sets the members below. */
  read(body: Body): unknown;
  /** The version of the request. */
  readonly codec: Codec;
  /** Decodes the request and encodes the answer. */
  readonly shapes: Shapes;
  /** The operation that is called. */
  readonly operation: OperationName;
  /** The tenant in the URL, for versions whose requests have no tenant field. */
  readonly tenant?: string | undefined;
  /** Bytes of memory per byte of the answer. Set to `converted` if the text of `shapes` is not sent unchanged. Default: depends on `shapes`. */
  readonly weight?: number;
  /** Whether the binding writes the files of an answer piece by piece (`Reply.inline`). */
  readonly streamsFiles?: true;
  /** Answers with a reply. The binding calls `context.end()` when the answer is sent or the client has disconnected. */
  reply(reply: AnyReply, context: ServerContext): Answer | Promise<Answer>;
  /** Answers with a stream. The binding calls `context.end()` when the stream is over. */
  stream(reply: StreamReply, context: ServerContext): Answer | Promise<Answer>;
  /** Answers with an error, which `failureOf` creates from a thrown value. `fields` names the task in the log. Must not throw. */
  fail(thrown: unknown, fields?: LogFields): Answer | Promise<Answer>;
}

/** The reply of any operation without a stream. */
export type AnyReply = Reply<UnaryOperations[UnaryName]["response"]>;

/** Bytes of memory per byte of an answer whose text is sent unchanged, because a string has one or two bytes per character. */
const asText = 2;

/** Bytes of memory per byte of a converted answer, for its text, its value, and the sent bytes. */
export const converted = 4;

/** A called operation. */
type Invoked =
  | { readonly stream: false; readonly context: ServerContext; readonly reply: Promise<AnyReply> }
  | { readonly stream: true; readonly context: ServerContext; readonly reply: Promise<StreamReply> };

/** Answers a request of any binding: admits it, authenticates the caller, reads the request, calls the service, and answers. */
export async function answerCall<Body, Answer>(host: ServerHost, call: ServerCall<Body, Answer>): Promise<Answer> {
  let context: ServerContext | undefined;
  try {
    host.admit?.(call.request);
    call.accept?.();
    // Only promises are awaited, because `await` is slow here (docs/decisions/hot-path.md).
    const known = host.authenticate(call.request);
    const principal = known instanceof Promise ? await known : known;
    let body: Body | undefined = await call.body(principal);
    call.files?.received();
    let invoked: Invoked | undefined = invoke(host, call, principal, body);
    // Cleared, because the variables of this function live until the answer, which may take hours.
    body = undefined;
    context = invoked.context;
    const answer = invoked.stream
      ? call.stream(await invoked.reply, context)
      : call.reply(await invoked.reply, context);
    invoked = undefined;
    if (call.files !== undefined) void call.files.close();
    return answer instanceof Promise ? await answer : answer;
  } catch (thrown) {
    context?.end();
    if (call.files !== undefined) await call.files.close();
    return call.fail(thrown, context?.fields);
  }
}

function invoke<Body>(host: ServerHost, call: ServerCall<Body, unknown>, principal: Principal, body: Body): Invoked {
  const input = call.read(body);
  const { request, codec, shapes, operation, weight = shapes.responsePieces === undefined ? converted : asText } = call;
  const decoded = shapes.decodeRequest(operation, input);
  const { files } = call;
  const params = files === undefined ? decoded : withFiles(operation, decoded, files);
  const found = serviceOf(host, call.tenant ?? params.tenant);
  const service = codec.adapt === undefined ? found : codec.adapt(found);
  const stream = host.operations[operation]?.stream === true;
  const context = requestContext(request, principal, codec.version, stream, host.limits.answers, weight);
  const { taskId, contextId } = resourceOf(operation, params);
  if (taskId !== undefined) context.taskId = taskId;
  if (contextId !== undefined) context.contextId = contextId;
  if (call.streamsFiles === true) context.streamsFiles = true;
  if (files !== undefined) context.incoming = files.files;
  const invoked: Invoked = stream
    ? { stream, context, reply: service.stream(operation as StreamName, params as never, context) }
    : { stream, context, reply: service.call(operation as UnaryName, params, context) };
  if (host.calls !== undefined) context.count(host.calls, found);
  return invoked;
}

type Requests = Operations[OperationName]["request"];

/** The request with the URLs of its files. Rejects files in operations without messages, which would misread the placeholder of a file. */
function withFiles(operation: OperationName, params: Requests, files: IncomingFiles): Requests {
  if (isSend(operation, params)) return files.resolve(params);
  if (files.isEmpty) return params;
  throw new A2AError("RequestTooLarge", "Only messages may be this large");
}

/**
 * The service of a tenant; `""` means no tenant. A tenant is a routing label and does not identify the caller. Throws
 * `InvalidParams` for an unknown tenant.
 */
export function serviceOf({ services }: Pick<ServerHost, "services">, tenant: string | undefined): AgentService {
  const service = services.get(tenant === "" ? undefined : tenant);
  if (service !== undefined) return service;
  throw invalidParams([
    tenant === undefined || tenant === ""
      ? { field: "tenant", description: "is required: several agents share this address" }
      : { field: "tenant", description: "names no agent at this address" },
  ]);
}

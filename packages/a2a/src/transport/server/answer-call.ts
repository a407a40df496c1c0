import type {
  OperationName,
  Principal,
  Reply,
  StreamName,
  StreamReply,
  UnaryName,
  UnaryOperations,
  UniversalRequest,
} from "../../protocol/index.ts";
import type { Codec, Shapes } from "../../wire/codec.ts";
import { serviceOf, type ServerHost } from "./host.ts";
import { requestContext, type ServerContext } from "./request.ts";

/**
 * A request on its way in, in the words of a binding. `answerCall` calls its functions in the order in which they stand here.
 * `Body` is what `body` reads, `Answer` what the binding answers with.
 */
export interface ServerCall<Body, Answer> {
  /** Headers, the caller's address, and the signal that it is gone. */
  readonly request: UniversalRequest;
  /** Throws for what is refused whoever calls, such as a method that the address does not take. */
  accept?(): void;
  /** What the request says, unread: text or bytes. Throws for what is refused by its address or its headers. */
  body(): Body | Promise<Body>;
  /** Reads it, and gives the operation's request as `shapes` decode it. From then on the following members are known. */
  read(body: Body): unknown;
  /** The version of the request. */
  readonly codec: Codec;
  /** Reads the request and writes the answer. */
  readonly shapes: Shapes;
  /** The operation that is called. */
  readonly operation: OperationName;
  /** The tenant that the address names, where requests of the version have no field for it. */
  readonly tenant?: string | undefined;
  /** What a byte of the answer takes in memory, in bytes: `converted` where the shapes' text is not what goes out. Default: by the shapes. */
  readonly weight?: number;
  /** Answers. The binding ends `context` when the answer is out, or its reader gone. */
  reply(reply: AnyReply, context: ServerContext): Answer | Promise<Answer>;
  /** Answers with a stream. The binding ends `context` when it is over. */
  stream(reply: StreamReply, context: ServerContext): Answer | Promise<Answer>;
  /** Answers with what went wrong: see `failureOf`. Must not throw. */
  fail(thrown: unknown): Answer;
}

/** The reply of whatever operation that has no stream. */
export type AnyReply = Reply<UnaryOperations[UnaryName]["response"]>;

/** What a byte of an answer takes in memory where its text goes out as it is: a character has one byte there, or two. */
const asText = 2;

/** The same where it is converted: the text, what it says, and what goes out in its place. */
export const converted = 4;

/** An operation that was called: its answer, or its stream, is on the way. */
type Invoked =
  | { readonly stream: false; readonly context: ServerContext; readonly reply: Promise<AnyReply> }
  | { readonly stream: true; readonly context: ServerContext; readonly reply: Promise<StreamReply> };

/** Answers a request, whatever the binding: admits it, finds out who calls, reads it, calls the operation, and has the answer written. */
export async function answerCall<Body, Answer>(host: ServerHost, call: ServerCall<Body, Answer>): Promise<Answer> {
  let context: ServerContext | undefined;
  try {
    host.admit?.(call.request);
    call.accept?.();
    const known = host.authenticate(call.request);
    const principal = known instanceof Promise ? await known : known;
    let body: Body | Promise<Body> | undefined = call.body();
    let invoked: Invoked | undefined = invoke(host, call, principal, body instanceof Promise ? await body : body);
    // What stands in a variable here lives until the answer, which may be hours away.
    body = undefined;
    context = invoked.context;
    const answer = invoked.stream
      ? call.stream(await invoked.reply, context)
      : call.reply(await invoked.reply, context);
    invoked = undefined;
    return answer instanceof Promise ? await answer : answer;
  } catch (thrown) {
    context?.end();
    return call.fail(thrown);
  }
}

function invoke<Body>(host: ServerHost, call: ServerCall<Body, unknown>, principal: Principal, body: Body): Invoked {
  const input = call.read(body);
  const { request, codec, shapes, operation, weight = shapes.responsePieces === undefined ? converted : asText } = call;
  const params = shapes.decodeRequest(operation, input);
  const found = serviceOf(host, call.tenant ?? params.tenant);
  const service = codec.adapt === undefined ? found : codec.adapt(found);
  const stream = host.operations[operation]?.stream === true;
  const context = requestContext(request, principal, codec.version, stream, host.limits.answers, weight);
  return stream
    ? { stream, context, reply: service.stream(operation as StreamName, params as never, context) }
    : { stream, context, reply: service.call(operation as UnaryName, params, context) };
}

import type {
  CallContext,
  Reply,
  StreamName,
  StreamOperations,
  UnaryName,
  UnaryOperations,
} from "../../protocol/index.ts";
import type { EventStream } from "../log/index.ts";

/** What an operation is given: the request, its call, and the URIs of the extensions that are active in it. */
type Operation<Request, Answer> = (request: Request, context: CallContext, extensions: readonly string[]) => Answer;

/** The operations that answer once, by name. */
export type UnaryHandlers = {
  readonly [Name in UnaryName]: Operation<
    UnaryOperations[Name]["request"],
    Promise<Reply<UnaryOperations[Name]["response"]>>
  >;
};

/** The operations that answer with a stream, by name. */
export type StreamHandlers = {
  readonly [Name in StreamName]: Operation<StreamOperations[Name]["request"], Promise<EventStream>>;
};

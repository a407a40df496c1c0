import type { OperationName } from "../protocol/index.ts";
import type { ClientCodec, Codec, OwnShapes } from "./codec.ts";

/** Where an operation is called over REST (A2A 1.0 §11.3). */
export interface RestRoute {
  /** The operation. */
  readonly operation: OperationName;
  /** The first is what a client sends. */
  readonly methods: readonly ("GET" | "POST" | "DELETE")[];
  /** Segments after the base; `{name}` takes a segment, and the last one may end in a literal `:verb`. E.g. `/tasks/{id}:cancel`. */
  readonly path: string;
  /** Whether the rest of the request is the body; a POST without one means an empty request all the same. */
  readonly body: boolean;
  /** What the query may carry, by name, with the type that its text stands for (§11.5); other parameters are ignored. */
  readonly query?: Readonly<Record<string, "string" | "integer" | "boolean">>;
}

/** What REST (A2A 1.0 §11) needs of a version, beside its shapes. An error is the whole body of an answer. */
export interface RestWire extends OwnShapes {
  /** The routes of the operations. */
  readonly routes: readonly RestRoute[];
  /** Routes that are found beside the base and at the root of the host as well, where no two agents would answer. */
  readonly elsewhere?: readonly RestRoute[];
  /** Media type of a successful answer. */
  readonly mediaType: string;
}

/** A version that REST can speak. */
export interface RestCodec extends Codec {
  readonly bindings: Codec["bindings"] & { readonly "HTTP+JSON": RestWire };
}

/** As much of it as a client needs. */
export interface RestClientCodec extends ClientCodec {
  readonly bindings: {
    readonly "HTTP+JSON": Pick<
      RestWire,
      "routes" | "mediaType" | "encodeRequest" | "decodeResponse" | "decodeEvent" | "endsStream" | "decodeError"
    >;
  };
}

/** Whether a version can be spoken over REST. */
export function speaksRest(codec: Codec): codec is RestCodec {
  return codec.bindings["HTTP+JSON"] !== undefined;
}

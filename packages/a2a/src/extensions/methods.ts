import type { AnyExtension, ExtensionMethod, ExtensionMethods, MethodName, MethodRoute } from "../protocol/index.ts";

/**
 * Where a method of an extension is on the wire. A client passes it as `outgoing.method` of the context of the call.
 *
 * @param name - Its name in `methods`.
 */
export function methodRoute(
  name: MethodName,
  { jsonrpc = name, rest, grpc, idempotent = false }: Omit<ExtensionMethod, "onCall">,
): MethodRoute {
  return { name, jsonrpc, rest, grpc, idempotent };
}

/** A method with the extension that it is of. */
export interface OwnedMethod {
  /** The URI of the extension. */
  readonly uri: string;
  readonly route: MethodRoute;
  readonly method: ExtensionMethod;
}

/** The methods of some extensions. */
export function methodsOf(extensions: Iterable<AnyExtension>): readonly OwnedMethod[] {
  return Array.from(extensions).flatMap(({ uri, methods = {} }) =>
    Object.entries(methods as ExtensionMethods).map(([name, method]) => {
      return { uri, method, route: methodRoute(name as MethodName, method) };
    }),
  );
}

import { isObject } from "../model/schema.ts";
import type { AnyExtension, ExtensionMethod, ExtensionMethods, MethodName, MethodRoute } from "../protocol/index.ts";
import { about, type Problems } from "./problems.ts";
import { schemaProblem } from "./values.ts";

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

const longestName = 200;
const restPath = /^(?:\/(?:[\w\-.~!$&'()*+,;=:@%]+|\{\w+\}(?::\w+)?))+$/;
/** The full name of a service, and the name of a method, as .proto files have them: reflection of gRPC describes them so. */
const grpcPath = /^\/[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\/[A-Za-z_]\w*$/;

/** What is wrong with the methods of a definition: with their names, their schemas, and where they are on the wire. */
export function methodProblems({ methods }: AnyExtension): Problems {
  if (methods === undefined) return [];
  if (!isObject(methods)) return about("methods", "must be an object of methods, by their names");
  return Object.entries(methods).flatMap(([name, method]) => {
    const field = `methods[${JSON.stringify(name)}]`;
    const isName = /^[^/\s]+\/\S+$/.test(name) && name.length <= longestName;
    if (!isName) return about(field, 'must have a slash in its name, as "tasks/search"');
    return isObject(method)
      ? problemsOf(field, method)
      : about(field, "must be a method, as extensionMethod() makes it");
  });
}

function problemsOf(field: string, method: Readonly<Record<string, unknown>>): Problems {
  const { request, response, jsonrpc, rest, grpc, onCall, idempotent } = method;
  return [
    ...about(`${field}.request`, schemaProblem(request)),
    ...about(`${field}.response`, schemaProblem(response)),
    ...about(
      `${field}.jsonrpc`,
      jsonrpc !== undefined &&
        (typeof jsonrpc !== "string" || jsonrpc === "" || jsonrpc.startsWith("rpc.")) &&
        'must name a method that does not begin with "rpc." (JSON-RPC 2.0 §4.3)',
    ),
    ...restProblems(`${field}.rest`, rest),
    ...about(
      `${field}.grpc`,
      (typeof grpc !== "string" || !grpcPath.test(grpc)) &&
        'must be the path of a method, such as "/example.tasks.v1.Search/SearchTasks"',
    ),
    ...about(`${field}.onCall`, onCall !== undefined && typeof onCall !== "function" && "must be a function"),
    ...about(
      `${field}.idempotent`,
      idempotent !== undefined && typeof idempotent !== "boolean" && "must be true or false",
    ),
  ];
}

function restProblems(field: string, rest: unknown): Problems {
  if (!isObject(rest))
    return about(
      field,
      'must say where the method is over HTTP+JSON, such as { method: "POST", path: "/tasks:search" }',
    );
  const { method, path } = rest;
  const isPath = typeof path === "string" && restPath.test(path) && !/\/\.\.?(?:\/|$)/.test(path);
  return [
    ...about(`${field}.method`, method !== "GET" && method !== "POST" && "must be GET or POST"),
    ...about(`${field}.path`, !isPath && 'must be a path below the base, such as "/tasks:search"'),
  ];
}

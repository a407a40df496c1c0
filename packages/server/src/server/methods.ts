import { methodProblems } from "@parley/a2a/internal/extensions/definition";
import { methodsOf, type OwnedMethod } from "@parley/a2a/internal/extensions/methods";
import {
  operations,
  type AnyExtension,
  type MethodRoute,
  type OperationName,
  type OperationTable,
} from "@parley/a2a/internal/protocol/index";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import type { Codec, JsonRpcWire, RestRoute, RestWire } from "@parley/a2a/internal/wire/codec";

/* The methods that extensions add to a server: checks that their names and paths on the wire are valid and unique. */

/**
 * The methods of the extensions of all agents. Agents may have the same extension.
 *
 * @param codecs - Every known version, even those that the server does not speak yet, because a proxy may speak them.
 * @throws A2AError `InvalidParams` for a method without `onCall`, for two methods with the same name or path, and for a
 * method that conflicts with the protocol.
 */
export function methodRoutes(
  agents: readonly (readonly AnyExtension[])[],
  codecs: readonly Codec[],
): readonly MethodRoute[] {
  const found: OwnedMethod[] = [];
  for (const each of agents.flat()) checkMethods(each);
  for (const own of agents.flatMap((extensions) => [...methodsOf(extensions)])) {
    const same = found.find(({ uri, route }) => uri === own.uri && isSame(route, own.route));
    if (same !== undefined) continue;
    checkProtocol(own, codecs);
    for (const other of found) checkOther(own, other);
    found.push(own);
  }
  return found.map(({ route }) => route);
}

/** Rejects paths that no request can have, and methods without `onCall`. */
function checkMethods(extension: AnyExtension): void {
  const [problem] = methodProblems(extension);
  if (problem !== undefined) {
    throw cannotServe("extensions", `has ${extension.uri}, and ${problem.field} ${problem.description}`);
  }
  for (const { uri, route, method } of methodsOf([extension])) {
    if (method.onCall !== undefined) continue;
    refused(uri, route.name, "onCall is missing: a client can use this value, a server cannot");
  }
}

function isSame(one: MethodRoute, other: MethodRoute): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Reserved services of gRPC: A2A's own, and those of every gRPC server. */
const grpcServices = /^\/(?:lf\/|(?:lf\.a2a|a2a|grpc|google)[./])/;

/** Rejects a method that conflicts with the protocol. The REST binding rejects a tenant whose paths conflict with a method. */
function checkProtocol({ uri, route }: OwnedMethod, codecs: readonly Codec[]): void {
  const { name, jsonrpc, rest, grpc } = route;
  for (const { version, bindings } of codecs) {
    const { JSONRPC: rpc, "HTTP+JSON": wire } = bindings as { JSONRPC?: JsonRpcWire; "HTTP+JSON"?: RestWire };
    const names = Object.keys(operations).flatMap((each) => [each, rpc?.method(each as OperationName) ?? each]);
    if (names.includes(jsonrpc)) refused(uri, name, `${JSON.stringify(jsonrpc)} is a method of A2A ${version}`);
    if (names.includes(name)) refused(uri, name, `it has the name of a method of A2A ${version}`);
    for (const { path } of [...(wire?.routes ?? []), ...(wire?.elsewhere ?? [])]) {
      if (overlap(rest.path, path)) refused(uri, name, `${rest.path} is a path of A2A ${version}: ${path}`);
    }
  }
  if (/^\/\.well-known(?:\/|$)/.test(rest.path)) refused(uri, name, `${rest.path} is reserved for cards`);
  if (grpcServices.test(grpc)) refused(uri, name, `${grpc} is in a package of A2A or of gRPC`);
}

/** Rejects two methods with the same name or path, of two extensions or of one. */
function checkOther(own: OwnedMethod, other: OwnedMethod): void {
  const [mine, theirs] = [own.route, other.route];
  const whose =
    own.uri === other.uri && mine.name === theirs.name
      ? `another value of the same extension has it at another route`
      : `${theirs.name} of the extension ${other.uri} has it too`;
  const refuse = (what: string): never => refused(own.uri, mine.name, `${what}: ${whose}`);
  if (mine.name === theirs.name) refuse("its name is taken");
  if (mine.jsonrpc === theirs.jsonrpc) refuse(`the JSON-RPC method ${JSON.stringify(mine.jsonrpc)} is taken`);
  if (overlap(mine.rest.path, theirs.rest.path)) refuse(`the REST path ${mine.rest.path} is taken`);
  if (mine.grpc === theirs.grpc) refuse(`the gRPC path ${mine.grpc} is taken`);
  const [service, another] = [serviceOf(mine.grpc), serviceOf(theirs.grpc)];
  if (isBelow(service, another) || isBelow(another, service)) {
    refuse(`the gRPC service ${service} conflicts with ${another}: a name cannot be both a service and a package`);
  }
}

/** The full name of the service that a path of gRPC names. */
function serviceOf(grpc: string): string {
  return grpc.slice(1, grpc.lastIndexOf("/"));
}

function isBelow(name: string, other: string): boolean {
  return name.startsWith(`${other}.`);
}

function refused(uri: string, name: string, problem: string): never {
  throw cannotServe("extensions", `has the method ${JSON.stringify(name)} of the extension ${uri}, but ${problem}`);
}

/** The operations of the protocol, and the methods of extensions. */
export function operationsWith(methods: readonly MethodRoute[] = []): OperationTable {
  if (methods.length === 0) return operations;
  const rows = methods.map(({ name, idempotent }) => [name, { stream: false, idempotent }] as const);
  return { ...operations, ...Object.fromEntries(rows) };
}

/** Whether a request can match both paths. */
function overlap(one: RestRoute["path"], other: RestRoute["path"]): boolean {
  const [mine, theirs] = [one.split("/"), other.split("/")];
  if (mine.length !== theirs.length) return false;
  return mine.every((segment, at) => segmentsMeet(segment, theirs[at] ?? ""));
}

function segmentsMeet(one: string, other: string): boolean {
  const [first, second] = [verbOf(one), verbOf(other)];
  if (first === undefined) return second === undefined ? one === other : one.endsWith(second);
  if (second === undefined) return other.endsWith(first);
  // `/tasks/{id}:cancel` takes precedence over `/tasks/{id}`, so only equal verbs conflict.
  return first === second;
}

/** The text after the parameter of a segment: `:cancel` of `{id}:cancel`. `undefined` for a segment without a parameter. */
function verbOf(segment: string): string | undefined {
  return /^\{\w+\}(.*)$/.exec(segment)?.[1];
}

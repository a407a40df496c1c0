import { utf8Length } from "../base/index.ts";
import { nearestOf } from "../model/options.ts";
import { invalidParams, isTaskState, type AgentCard, type FieldViolation } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { AnyExtension, ExtensionKind, MetadataPlace } from "../protocol/index.ts";
import { bare, fieldsOf, type ExtensionFields } from "./fields.ts";
import { isSchema, misfits, schemaProblem } from "./schemas.ts";

/* Checks definitions, which may come from JavaScript without types. */

type Problems = readonly FieldViolation[];
/** The problem of a member; `undefined` or `false`: no problem. */
type Check = (value: unknown) => string | undefined | false;
type Members = Readonly<Record<string, Check>>;
type Json = Readonly<Record<string, unknown>>;

/** Maximum length of the URI of an extension that keeps rows, in bytes. The URI names the rows (`featureBounds.name`). */
const maxFeatureBytes = 256;
/** Maximum length of the key of a metadata field, in bytes. */
const maxKeyBytes = 2048 + 256;
/** Maximum length of the name of a method, in characters. */
const maxMethodName = 200;

const places: readonly MetadataPlace[] = [
  "request",
  "message",
  "part",
  "artifact",
  "task",
  "statusUpdate",
  "artifactUpdate",
];
const kinds: readonly ExtensionKind[] = ["data", "profile", "method", "state"];
const mediaTypePattern = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;.*)?$/;
const restPath = /^(?:\/(?:[\w\-.~!$&'()*+,;=:@%]+|\{\w+\}(?::\w+)?))+$/;
/** The full name of a service, and the name of a method, in the form of .proto files, because gRPC reflection describes them. */
const grpcPath = /^\/[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\/[A-Za-z_]\w*$/;

const optional =
  (check: Check): Check =>
  (value) =>
    value !== undefined && check(value);
const elsewhere: Check = () => undefined;
const flag = optional((value) => typeof value !== "boolean" && "must be true or false");
const callable = optional((value) => typeof value !== "function" && "must be a function");
const memberName: Check = (value) =>
  (typeof value !== "string" || isReservedName(value)) && "must be the name of a member";

/** The members of each object of a definition. Members that are checked `elsewhere` depend on other members. */
const ofExtension: Members = {
  uri: uriProblem,
  wakeRows: flag,
  searchesTasks: flag,
  description: optional((value) => typeof value !== "string" && "must be a text"),
  kind: optional((value) => !kinds.some((kind) => kind === value) && `must be one of ${kinds.join(", ")}`),
  required: flag,
  params: optional((value) => !isJsonObject(value) && "must be a JSON object"),
  paramsSchema: optional(schemaProblem),
  requires: elsewhere,
  metadata: elsewhere,
  data: elsewhere,
  subStates: elsewhere,
  methods: elsewhere,
  "~types": elsewhere,
  onActivate: callable,
  onAccept: callable,
  onTurnStart: callable,
  onAppend: callable,
  onDeliver: callable,
  onFinish: callable,
  onDelegate: callable,
  onTurnEnd: callable,
  onRequest: callable,
  onEvent: callable,
};
const ofField: Members = { key: elsewhere, schema: elsewhere, volatile: flag };
const ofPart: Members = {
  schema: schemaProblem,
  mediaType: optional(
    (value) =>
      (typeof value !== "string" || !mediaTypePattern.test(value)) && "must be a media type, such as application/json",
  ),
  matches: callable,
};
const ofSubState: Members = {
  state: (value) => !isTaskState(value) && "must be a state of the protocol, which it annotates",
  key: optional(memberName),
  value: optional(
    (value) => !["string", "number", "boolean"].includes(typeof value) && "must be a text, a number, true or false",
  ),
};
const ofMethod: Members = {
  request: schemaProblem,
  response: schemaProblem,
  jsonrpc: optional(
    (value) =>
      (typeof value !== "string" || value === "" || value.startsWith("rpc.")) &&
      'must name a method that does not begin with "rpc." (JSON-RPC 2.0 §4.3)',
  ),
  rest: (value) =>
    !isObject(value) &&
    'must have the route of the method over HTTP+JSON, such as { method: "POST", path: "/tasks:search" }',
  grpc: (value) =>
    (typeof value !== "string" || !grpcPath.test(value)) &&
    'must be the path of a method, such as "/example.tasks.v1.Search/SearchTasks"',
  onCall: callable,
  idempotent: flag,
};
const ofRest: Members = {
  method: (value) => value !== "GET" && value !== "POST" && "must be GET or POST",
  path: (value) =>
    (typeof value !== "string" || !restPath.test(value) || /\/\.\.?(?:\/|$)/.test(value)) &&
    'must be a path below the base, such as "/tasks:search"',
};

/**
 * Checks an extension.
 *
 * @param path - Path of the extension, with a dot at its end, for errors.
 * @param strict - Whether unknown members are errors. Without types, a misspelled member would silently do nothing.
 * @throws A2AError `InvalidParams` that names each wrong field.
 */
export function checkDefinition(extension: unknown, path = "", strict = false): asserts extension is AnyExtension {
  const problems = isObject(extension)
    ? new Checker(extension, strict).problems().map(({ field, description }) => ({ field: path + field, description }))
    : about(path.slice(0, -1) || "extension", "must be an object made by defineExtension()");
  if (problems.length === 0) return;
  const uri = isObject(extension) && typeof extension["uri"] === "string" ? ` ${extension["uri"].slice(0, 200)}` : "";
  const list = problems.map(({ field, description }) => `${field} ${description}`).join("; ");
  throw invalidParams(problems, `The extension${uri} is invalid: ${list}`);
}

/** The problems of an extension's methods. */
export function methodProblems(extension: AnyExtension): Problems {
  return new Checker(extension, false).methods();
}

class Checker {
  readonly #given: Json;
  readonly #strict: boolean;

  constructor(given: Json, strict: boolean) {
    this.#given = given;
    this.#strict = strict;
  }

  problems(): Problems {
    const { uri, kind, required, wakeRows, methods, params, paramsSchema } = this.#given;
    const isData = kind === "data";
    const isTooLongForRows = wakeRows === true && typeof uri === "string" && utf8Length(uri) > maxFeatureBytes;
    return [
      ...this.#members(this.#given, "", ofExtension),
      ...about(
        "wakeRows",
        isTooLongForRows && `needs a uri of at most ${maxFeatureBytes} bytes, which is the name of the rows`,
      ),
      ...about(
        "required",
        isData && required === true && "cannot be true for the kind data: extensions that only add data are optional",
      ),
      ...(isData
        ? about("methods", isObject(methods) && Object.keys(methods).length > 0 && "are not for the kind data")
        : this.methods()),
      ...(isObject(params) && schemaProblem(paramsSchema) === undefined && isSchema(paramsSchema)
        ? misfits(paramsSchema, "params", params)
        : []),
      ...this.#requires(),
      ...this.#metadata(),
      ...this.#data(),
      ...this.#subStates(),
    ];
  }

  /** The problems of an object's members, including unknown members if `strict`. */
  #members(value: Json, path: string, table: Members): Problems {
    const names = Object.keys(table);
    const unknown = this.#strict ? Object.keys(value).filter((name) => !names.includes(name)) : [];
    return [
      ...Object.entries(table).flatMap(([name, check]) => about(path + name, check(value[name]))),
      ...unknown.flatMap((name) => {
        const meant = nearestOf(name, names);
        return about(
          path + name,
          meant === "" ? "is not a member of a definition" : `is unknown: did you mean ${meant}?`,
        );
      }),
    ];
  }

  /** The entries of a member that is an object, each checked. */
  #entries(member: string, what: string, check: (name: string, value: unknown) => Problems): Problems {
    const value = this.#given[member];
    if (value === undefined) return [];
    if (!isObject(value)) return about(member, `must be an object of ${what}`);
    return Object.entries(value).flatMap(([name, entry]) => check(name, entry));
  }

  methods(): Problems {
    return this.#entries("methods", "methods, by their names", (name, method) => {
      const field = `methods[${JSON.stringify(name)}]`;
      if (!/^[^/\s]+\/\S+$/.test(name) || name.length > maxMethodName)
        return about(field, 'must have a slash in its name, as "tasks/search"');
      if (!isObject(method)) return about(field, "must be a method made by extensionMethod()");
      const { rest } = method;
      return [
        ...this.#members(method, `${field}.`, ofMethod),
        ...(isObject(rest)
          ? this.#members({ method: rest["method"], path: rest["path"] }, `${field}.rest.`, ofRest)
          : []),
      ];
    });
  }

  #requires(): Problems {
    const { uri, requires = [] } = this.#given;
    if (!Array.isArray(requires)) return about("requires", "must be a list of URIs");
    return requires.flatMap((each: unknown, at) => [
      ...about(`requires[${at}]`, uriProblem(each)),
      ...about(`requires[${at}]`, each === uri && "is the extension itself"),
      ...about(`requires[${at}]`, requires.indexOf(each) !== at && "is there twice"),
    ]);
  }

  #metadata(): Problems {
    const shape = this.#entries("metadata", "places", (place, fields) => {
      if (!places.some((each) => each === place))
        return about(`metadata.${place}`, `must be one of ${places.join(", ")}`);
      if (!isObject(fields)) return about(`metadata.${place}`, "must be an object of fields");
      return Object.entries(fields).flatMap(([name, field]) => {
        const path = `metadata.${place}.${name}`;
        const isObjectField = !isSchema(field) && isObject(field);
        return [
          ...about(path, isReservedName(name) && "must have another name"),
          ...(isObjectField ? this.#members(field, `${path}.`, ofField) : []),
          ...about(path, schemaProblem(isObjectField ? field["schema"] : field)),
        ];
      });
    });
    const { metadata } = this.#given;
    if (shape.length > 0 || metadata === undefined) return shape;
    return keyProblems(fieldsOf({ ...(this.#given as unknown as AnyExtension), data: {} }));
  }

  #data(): Problems {
    const types = new Map<string, string>();
    return this.#entries("data", "fields", (name, field) => {
      const path = `data.${name}`;
      if (!isObject(field)) return about(path, "must have a schema");
      const { matches, mediaType } = field;
      const type = matches === undefined && typeof mediaType === "string" ? bare(mediaType) : undefined;
      const before = type === undefined ? undefined : types.get(type);
      if (type !== undefined) types.set(type, name);
      return [
        ...about(path, isReservedName(name) && "must have another name"),
        ...this.#members(field, `${path}.`, ofPart),
        ...about(path, mediaType === undefined && matches === undefined && "must have a mediaType, or matches"),
        ...about(`${path}.mediaType`, before !== undefined && `is the one of ${before}`),
      ];
    });
  }

  #subStates(): Problems {
    const known = new Map<string, string>();
    return this.#entries("subStates", "states", (name, subState) => {
      const path = `subStates.${name}`;
      if (!isObject(subState)) return about(path, "must have the state that it annotates");
      if (isReservedName(name)) return about(path, "must have another name");
      const { state, key = name, value = true } = subState;
      const identity = JSON.stringify([state, key, value]);
      const before = known.get(identity);
      known.set(identity, name);
      return [
        ...this.#members(subState, `${path}.`, ofSubState),
        ...about(path, before !== undefined && `is the same as ${before}`),
      ];
    });
  }
}

/** Keys must be names of members, and no two fields of a place may share a key. */
function keyProblems({ metadata }: ExtensionFields): Problems {
  return [...metadata].flatMap(([place, entries]) => {
    const owners = new Map<string, string>();
    return entries.flatMap(({ name, keys }) => {
      const field = `metadata.${place}.${name}.key`;
      const list: readonly unknown[] = Array.isArray(keys) ? keys : [];
      return [
        ...about(field, list.length === 0 && "must be a text, or a list of texts"),
        ...list.flatMap((key) => {
          if (typeof key !== "string" || isReservedName(key)) return about(field, "must be the name of a member");
          const owner = owners.get(key);
          owners.set(key, name);
          return [
            ...about(field, utf8Length(key) > maxKeyBytes && `must not take more than ${maxKeyBytes} bytes`),
            ...about(field, owner !== undefined && `has ${JSON.stringify(key)}, as ${owner} has`),
          ];
        }),
      ];
    });
  });
}

function about(field: string, description: string | undefined | false): Problems {
  return description === undefined || description === false ? [] : [{ field, description }];
}

/** Whether a name is reserved in the objects that agents and clients read. */
function isReservedName(name: string): boolean {
  return name === "" || name === "__proto__";
}

/** Whether a card can contain the value. */
function isJsonObject(value: unknown): boolean {
  try {
    return isObject(value) && JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}

/**
 * Checks the extensions of a server, each separately and all together.
 *
 * @throws A2AError `InvalidParams`.
 */
export function checkServed(extensions: readonly AnyExtension[]): void {
  extensions.forEach((extension, at) => checkDefinition(extension, `extensions[${at}].`));
  const uris = extensions.map(({ uri }) => uri);
  const twice = uris.find((uri, at) => uris.indexOf(uri) !== at);
  if (twice !== undefined) refuse(`must have one value for each URI, and ${twice} has two: give all agents the same`);
  const cycle = cycleIn(extensions);
  if (cycle !== undefined) refuse(`must not require each other: ${cycle.join(" requires ")}`);
}

/**
 * The extensions that a card declares.
 *
 * @throws A2AError `InvalidParams` if the card lacks what one of them requires.
 */
export function checkOnCard(
  extensions: readonly AnyExtension[],
  { name, capabilities }: AgentCard,
): readonly AnyExtension[] {
  if (extensions.length === 0) return extensions;
  const declared = new Set((capabilities.extensions ?? []).map(({ uri }) => uri));
  const own = extensions.filter(({ uri }) => declared.has(uri));
  for (const { uri, requires = [] } of own) {
    const missing = requires.filter((each) => !declared.has(each));
    if (missing.length === 0) continue;
    const which = `${uri}, which requires ${missing.join(", ")}`;
    refuse(`has ${which}: the agent ${JSON.stringify(name)} has no such extension`);
  }
  return own;
}

function refuse(description: string): never {
  throw invalidParams([{ field: "extensions", description }], `This cannot be served: extensions ${description}`);
}

/** A cycle of extensions that require each other, as URIs. `undefined`: no cycle. */
export function cycleIn(extensions: readonly AnyExtension[]): readonly string[] | undefined {
  const requires = new Map(extensions.map((extension) => [extension.uri, extension.requires ?? []]));
  const done = new Set<string>();
  const visit = (uri: string, path: readonly string[]): readonly string[] | undefined => {
    if (path.includes(uri)) return [...path.slice(path.indexOf(uri)), uri];
    if (done.has(uri)) return undefined;
    for (const next of requires.get(uri) ?? []) {
      const found = visit(next, [...path, uri]);
      if (found !== undefined) return found;
    }
    done.add(uri);
    return undefined;
  };
  for (const uri of requires.keys()) {
    const found = visit(uri, []);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Maximum length of an extension's URI, in bytes. A request's header must fit several. */
const maxUriBytes = 2048;
/** An absolute URI (RFC 3986), in a form that fits into a list of URIs in a header: without commas and spaces. */
const absoluteUri = /^[a-z][a-z\d+.-]*:(?:[\w\-.~:/?#[\]@!$&'()*+;=]|%[\da-f]{2})+$/i;

/** Why a text cannot be the URI of an extension; `undefined` if it can. */
export function uriProblem(uri: unknown): string | undefined {
  if (typeof uri !== "string" || uri === "") return "must be a URI";
  if (utf8Length(uri) > maxUriBytes) return `must not take more than ${maxUriBytes} bytes`;
  return absoluteUri.test(uri) ? undefined : "must be an absolute URI without commas and spaces";
}

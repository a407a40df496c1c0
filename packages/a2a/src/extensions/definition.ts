import { utf8Length } from "../base/index.ts";
import { invalidParams, isTaskState, type AgentCard, type StandardSchema } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { AnyExtension, ExtensionKind, MetadataPlace } from "../protocol/index.ts";
import { bare, fieldsOf, type ExtensionFields } from "./fields.ts";
import { methodProblems } from "./methods.ts";
import { about, isNoFlag, noFlag, type Problems, uriProblem } from "./problems.ts";
import { isSchema, misfits, schemaProblem } from "./values.ts";

/* What an extension must be. A definition may come from JavaScript, so its types are not taken for granted. */

/** Longest URI of an extension that keeps rows, in bytes: they have it as their name (`featureBounds.name`). */
const maxFeatureBytes = 256;
/** Longest key of a metadata field, in bytes. */
const maxKeyBytes = 2048 + 256;

const ofMessages: readonly MetadataPlace[] = ["request", "message", "part"];
const places: readonly MetadataPlace[] = [...ofMessages, "artifact", "task", "statusUpdate", "artifactUpdate"];
const kinds: readonly ExtensionKind[] = ["data", "profile", "method", "state"];
/** The hooks of an extension. */
export const hooks = [
  "onActivate",
  "onAccept",
  "onTurnStart",
  "onAppend",
  "onDeliver",
  "onFinish",
  "onDelegate",
  "onTurnEnd",
  "onRequest",
  "onEvent",
] as const;

/**
 * Checks an extension. `path`: of the extension, with a dot at its end, which errors name. `more`: what else is wrong with it.
 *
 * @throws A2AError `InvalidParams` that names each wrong field.
 */
export function checkDefinition(extension: unknown, path = "", more: Problems = []): asserts extension is AnyExtension {
  const problems = isObject(extension)
    ? [...problemsOf(extension), ...more].map(({ field, description }) => ({ field: path + field, description }))
    : about(path.slice(0, -1) || "extension", "must be an object, as defineExtension() makes it");
  if (problems.length === 0) return;
  const uri = isObject(extension) && typeof extension["uri"] === "string" ? ` ${extension["uri"].slice(0, 200)}` : "";
  const list = problems.map(({ field, description }) => `${field} ${description}`).join("; ");
  throw invalidParams(problems, `The extension${uri} cannot be: ${list}`);
}

function problemsOf(value: object): Problems {
  const extension = value as unknown as AnyExtension;
  const { uri, kind, required, description, params, paramsSchema, methods, wakeRows, searchesTasks } = extension;
  const isData = kind === "data";
  const isTooLongForRows = wakeRows === true && typeof uri === "string" && utf8Length(uri) > maxFeatureBytes;
  return [
    ...about("uri", uriProblem(uri)),
    ...about(
      "wakeRows",
      isTooLongForRows && `needs a uri of at most ${maxFeatureBytes} bytes, which is the name of the rows`,
    ),
    ...about("wakeRows", isNoFlag(wakeRows) && noFlag),
    ...about("searchesTasks", isNoFlag(searchesTasks) && noFlag),
    ...about("description", description !== undefined && typeof description !== "string" && "must be a text"),
    ...about("kind", kind !== undefined && !kinds.includes(kind) && `must be one of ${kinds.join(", ")}`),
    ...about("required", isNoFlag(required) && noFlag),
    ...about(
      "required",
      isData && required === true && "cannot be true for the kind data: what adds data alone may be left out",
    ),
    ...(isData
      ? about("methods", isObject(methods) && Object.keys(methods).length > 0 && "are not for the kind data")
      : methodProblems(extension)),
    ...about("params", params !== undefined && !isJsonObject(params) && "must be a JSON object"),
    ...(paramsSchema === undefined ? [] : paramsProblems(paramsSchema, params)),
    ...requiresProblems(extension),
    ...metadataProblems(extension),
    ...dataProblems(extension),
    ...subStateProblems(extension),
    ...hooks.flatMap((name) =>
      about(name, extension[name] !== undefined && typeof extension[name] !== "function" && "must be a function"),
    ),
  ];
}

function paramsProblems(schema: StandardSchema, params: unknown): Problems {
  const problem = schemaProblem(schema);
  if (problem !== undefined) return about("paramsSchema", problem);
  return isObject(params) ? misfits(schema, "params", params) : [];
}

/** Whether a card can carry it. */
function isJsonObject(value: unknown): boolean {
  try {
    return isObject(value) && JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}

function requiresProblems({ uri, requires = [] }: AnyExtension): Problems {
  if (!Array.isArray(requires)) return about("requires", "must be a list of URIs");
  const before = new Set<unknown>();
  return requires.flatMap((each: unknown, at) => {
    const isTwice = before.has(each);
    before.add(each);
    return [
      ...about(`requires[${at}]`, uriProblem(each)),
      ...about(`requires[${at}]`, each === uri && "is the extension itself"),
      ...about(`requires[${at}]`, isTwice && "is there twice"),
    ];
  });
}

/** A name is a member of what agents and clients read. */
function isNoName(name: string): boolean {
  return name === "" || name === "__proto__";
}

function metadataProblems(extension: AnyExtension): Problems {
  const { metadata } = extension;
  if (metadata === undefined) return [];
  if (!isObject(metadata)) return about("metadata", "must be an object of places");
  const shape = Object.entries(metadata).flatMap(([place, fields]) => {
    if (!places.some((each) => each === place))
      return about(`metadata.${place}`, `must be one of ${places.join(", ")}`);
    if (!isObject(fields)) return about(`metadata.${place}`, "must be an object of fields");
    return Object.entries(fields).flatMap(([name, field]) => {
      const schema = isSchema(field) ? field : isObject(field) ? field["schema"] : undefined;
      return [
        ...about(`metadata.${place}.${name}`, isNoName(name) && "must have another name"),
        ...about(
          `metadata.${place}.${name}.volatile`,
          !isSchema(field) && isObject(field) && isNoFlag(field["volatile"]) && noFlag,
        ),
        ...about(`metadata.${place}.${name}`, schemaProblem(schema)),
      ];
    });
  });
  return shape.length > 0 ? shape : keyProblems(fieldsOf({ ...extension, data: {} }));
}

/** Keys must be names of members, and each belongs to one field of its place. */
function keyProblems({ metadata }: ExtensionFields): Problems {
  return [...metadata].flatMap(([place, entries]) => {
    const owners = new Map<string, string>();
    return entries.flatMap(({ name, keys }) => {
      const field = `metadata.${place}.${name}.key`;
      const list: readonly unknown[] = Array.isArray(keys) ? keys : [];
      return [
        ...about(field, list.length === 0 && "must be a text, or a list of texts"),
        ...list.flatMap((key) => {
          if (typeof key !== "string" || key === "" || key === "__proto__")
            return about(field, "must be the name of a member");
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

function dataProblems({ data }: AnyExtension): Problems {
  if (data === undefined) return [];
  if (!isObject(data)) return about("data", "must be an object of fields");
  const types = new Map<string, string>();
  return Object.entries(data).flatMap(([name, field]) => {
    const place = `data.${name}`;
    if (!isObject(field)) return about(place, "must have a schema");
    const { matches, mediaType, schema } = field;
    const isType = typeof mediaType === "string" && /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;.*)?$/.test(mediaType);
    const type = matches === undefined && typeof mediaType === "string" ? bare(mediaType) : undefined;
    const before = type === undefined ? undefined : types.get(type);
    if (type !== undefined) types.set(type, name);
    return [
      ...about(place, isNoName(name) && "must have another name"),
      ...about(`${place}.schema`, schemaProblem(schema)),
      ...about(
        `${place}.mediaType`,
        mediaType !== undefined && !isType && "must be a media type, such as application/json",
      ),
      ...about(`${place}.matches`, matches !== undefined && typeof matches !== "function" && "must be a function"),
      ...about(place, mediaType === undefined && matches === undefined && "must have a mediaType, or matches"),
      ...about(`${place}.mediaType`, before !== undefined && `is the one of ${before}`),
    ];
  });
}

function subStateProblems({ subStates }: AnyExtension): Problems {
  if (subStates === undefined) return [];
  if (!isObject(subStates)) return about("subStates", "must be an object of states");
  const found = new Map<string, string>();
  return Object.entries(subStates).flatMap(([name, subState]) => {
    const place = `subStates.${name}`;
    if (!isObject(subState)) return about(place, "must have the state that it annotates");
    const { state, key = name, value = true } = subState as { state?: unknown; key?: unknown; value?: unknown };
    if (isNoName(name)) return about(place, "must have another name");
    const identity = JSON.stringify([state, key, value]);
    const before = found.get(identity);
    found.set(identity, name);
    return [
      ...about(`${place}.state`, !isTaskState(state) && "must be a state of the protocol, which it annotates"),
      ...about(
        `${place}.key`,
        (typeof key !== "string" || key === "" || key === "__proto__") && "must be the name of a member",
      ),
      ...about(
        `${place}.value`,
        !["string", "number", "boolean"].includes(typeof value) && "must be a text, a number, true or false",
      ),
      ...about(place, before !== undefined && `is the same as ${before}`),
    ];
  });
}

/**
 * Checks the extensions of a server: each by itself, and all of them together.
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
 * @throws A2AError `InvalidParams` where the card lacks what one of them requires.
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

/** URIs that lead back to the first one, each requiring the next. `undefined`: there is no such cycle. */
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

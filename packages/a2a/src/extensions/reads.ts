import { inspected } from "../base/display.ts";
import type {
  Artifact,
  FieldViolation,
  JsonObject,
  JsonValue,
  Message,
  Part,
  StandardSchema,
  StreamResponse,
  Task,
  TaskStatus,
} from "../model/index.ts";
import type {
  AnyExtension,
  EventReads,
  ExtensionTypes,
  ExtensionWrites,
  MetadataPlace,
  TurnReads,
} from "../protocol/index.ts";
import { isHarmless } from "./hook-calls.ts";
import { dataIn, fieldsOf, subStateOf, valuesIn, type ExtensionFields, type Misfit } from "./fields.ts";
import { misfits } from "./schemas.ts";

/** Objects from which a client can read the values of an extension. */
export type Readable = StreamResponse | Task | Message | Artifact;

/** Reads and writes the values of one extension. Reading never throws for untrusted values. */
export class ExtensionReader {
  readonly extension: AnyExtension;
  readonly fields: ExtensionFields;
  readonly #misfit: Misfit;

  /** @param misfit - Called with the field of each dropped value of an event, such as `task.metadata.at`. */
  constructor(extension: AnyExtension, misfit: Misfit = () => {}) {
    this.extension = extension;
    this.fields = fieldsOf(extension);
    this.#misfit = misfit;
  }

  /** Reports a dropped value of an event. Throws the error of a broken schema, unless the extension must not fail calls. */
  leftOut(field: string, mistake: TypeError | undefined): void {
    throwUnlessHarmless(this.extension, mistake);
    this.#misfit(field, mistake);
  }

  /** Whether it has any fields in metadata or data. */
  get hasFields(): boolean {
    return this.fields.metadata.size > 0 || this.fields.data.length > 0;
  }

  /** The extension's values in a message and its request, read on first access. */
  turn(message: Message, metadata: JsonObject | undefined): TurnReads<ExtensionTypes> {
    // Invalid values were logged when the message arrived.
    const dropped: Misfit = (_name, mistake) => throwUnlessHarmless(this.extension, mistake);
    const at = (place: MetadataPlace, of: JsonObject | undefined) => () =>
      valuesIn(this.fields.metadata.get(place), of, dropped);
    const reads: Reads<Omit<TurnReads<ExtensionTypes>, keyof ExtensionWrites<ExtensionTypes>>> = {
      message: at("message", message.metadata),
      request: at("request", metadata),
      data: () => dataIn(this.fields.data, message.parts, dropped),
    };
    return lazily(reads, this.writes());
  }

  /** The extension's values in an event, a task, a message or an artifact, read on first access. */
  event(from: Readable): EventReads<ExtensionTypes> {
    const { metadata, parts, status } = sourceOf(from);
    const droppedAt =
      (place: string): Misfit =>
      (name, mistake) =>
        this.leftOut(`${place}.${name}`, mistake);
    const at = (place: MetadataPlace) => () =>
      valuesIn(this.fields.metadata.get(place), metadata[place], droppedAt(`${place}.metadata`));
    return lazily<EventReads<ExtensionTypes>>({
      message: at("message"),
      artifact: at("artifact"),
      task: at("task"),
      statusUpdate: at("statusUpdate"),
      artifactUpdate: at("artifactUpdate"),
      data: () => dataIn(this.fields.data, parts, droppedAt("data")),
      subState: () => subStateOf(this.extension, status),
    });
  }

  /** Writes the values of the extension, if there is no message to read. */
  writes(): ExtensionWrites<ExtensionTypes> {
    return {
      metadata: (place, values) => metadataOf(this, place, values),
      part: (name, value) => partOf(this, name, value),
      subState: (name) => metadataOfSubState(this, name),
    };
  }
}

/** How each value is read. */
type Reads<T> = { readonly [Name in keyof T]: () => T[Name] };

/** An object whose members are read on first access. `methods` are hidden from logs and JSON. */
function lazily<T extends object, Methods extends object = object>(reads: Reads<T>, methods?: Methods): T & Methods {
  const made = {};
  for (const [name, read] of Object.entries<() => unknown>(reads)) {
    let found: { readonly value: unknown } | undefined;
    Object.defineProperty(made, name, { enumerable: true, get: () => (found ??= { value: read() }).value });
  }
  const plain = (): object => Object.fromEntries(Object.entries(made).filter(([, value]) => value !== undefined));
  for (const [name, value] of [...Object.entries(methods ?? {}), ["toJSON", plain], [inspected, plain]] as const)
    Object.defineProperty(made, name, { value });
  return made as T & Methods;
}

interface Source {
  readonly metadata: { readonly [Place in MetadataPlace]?: JsonObject | undefined };
  readonly parts: readonly Part[];
  readonly status: TaskStatus | undefined;
}

function sourceOf(source: Readable): Source {
  if ("messageId" in source) return sourceOfMessage(source, undefined);
  if ("artifactId" in source)
    return { metadata: { artifact: source.metadata }, parts: source.parts, status: undefined };
  if ("status" in source) return sourceOfTask(source);
  const { task, message, statusUpdate, artifactUpdate } = source as Partial<StreamResponse>;
  if (task !== undefined) return sourceOfTask(task);
  if (message !== undefined) return sourceOfMessage(message, undefined);
  if (artifactUpdate !== undefined) {
    const { artifact, metadata } = artifactUpdate;
    return {
      metadata: { artifact: artifact.metadata, artifactUpdate: metadata },
      parts: artifact.parts,
      status: undefined,
    };
  }
  const status = statusUpdate?.status;
  const { metadata, parts } = sourceOfMessage(status?.message, status);
  return { metadata: { ...metadata, statusUpdate: statusUpdate?.metadata }, parts, status };
}

function sourceOfMessage(message: Message | undefined, status: TaskStatus | undefined): Source {
  return { metadata: { message: message?.metadata }, parts: message?.parts ?? [], status };
}

function sourceOfTask({ metadata, status, artifacts = [] }: Task): Source {
  return {
    metadata: { task: metadata, message: status.message?.metadata, artifact: artifacts.at(-1)?.metadata },
    parts: artifacts.flatMap(({ parts }) => parts),
    status,
  };
}

function metadataOf({ extension, fields }: ExtensionReader, place: MetadataPlace, values: object = {}): JsonObject {
  const entries = fields.metadata.get(place) ?? [];
  const written: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const entry = entries.find((each) => each.name === name);
    if (entry === undefined) throw new TypeError(`The extension ${extension.uri} has no ${name} in ${place}.metadata`);
    checkFits(extension, entry.schema, `${place}.metadata.${name}`, value);
    written[entry.keys[0]] = value as JsonValue;
  }
  return written;
}

function partOf({ extension, fields }: ExtensionReader, name: string, value: unknown): Part {
  const entry = fields.data.find((each) => each.name === name);
  if (entry === undefined) throw new TypeError(`The extension ${extension.uri} has no data parts named ${name}`);
  const { mediaType, schema, matches } = entry;
  checkFits(extension, schema, name, value);
  const part: Part = { data: value as JsonValue, ...(mediaType !== undefined && { mediaType }) };
  if (!matches(part)) throw new TypeError(`A part with this value is not one that the extension reads as ${name}`);
  return part;
}

function metadataOfSubState({ extension }: ExtensionReader, name: string): JsonObject {
  const { subStates = {} } = extension;
  const subState = Object.hasOwn(subStates, name) ? subStates[name] : undefined;
  if (subState === undefined) throw new TypeError(`The extension ${extension.uri} has no sub-state ${name}`);
  return { [subState.key ?? name]: subState.value ?? true };
}

/** Throws a `TypeError` for an invalid value. For the kind `data`, a value that the schema cannot check is written unchanged. */
function checkFits(extension: AnyExtension, schema: StandardSchema, field: string, value: unknown): void {
  let problems: readonly FieldViolation[] = [];
  try {
    problems = misfits(schema, field, value);
  } catch (mistake) {
    throwUnlessHarmless(extension, mistake as TypeError);
  }
  const [first] = problems;
  if (first !== undefined) throw new TypeError(`${first.field} ${first.description}`);
}

function throwUnlessHarmless(extension: AnyExtension, mistake: TypeError | undefined): void {
  if (mistake !== undefined && !isHarmless(extension)) throw mistake;
}

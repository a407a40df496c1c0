import { readFileSync } from "node:fs";
import { parseSync } from "oxc-parser";
import type { OperationName } from "@parley/a2a/protocol";

/**
 * The fields of the protocol's requests. They are read from the source code of the types, so that new fields are fuzzed
 * without a change here.
 */

/** The shape of a value, from its type. */
export type Shape =
  | { readonly kind: "string" | "number" | "boolean" | "json"; readonly sample: unknown }
  | { readonly kind: "object"; readonly fields: ReadonlyMap<string, Field> }
  /** One shape for each alternative. A list of all of them is a valid value. */
  | { readonly kind: "list"; readonly items: readonly Shape[] };

export interface Field {
  readonly shape: Shape;
  readonly optional: boolean;
}

export type Path = readonly (string | number)[];

/** The used part of the syntax tree. */
interface Node {
  readonly type: string;
  readonly [member: string]: unknown;
}

const source = new URL("../../packages/a2a/src/", import.meta.url);

/** The interfaces and type aliases of a file, by name. */
function declarationsIn(file: string): Map<string, Node> {
  const { program, errors } = parseSync(file, readFileSync(new URL(file, source), "utf8"));
  if (errors.length > 0) throw new Error(`${file} cannot be parsed`);
  const found = new Map<string, Node>();
  for (const statement of program.body as unknown as Node[]) {
    const node = (statement["declaration"] ?? statement) as Node;
    if (node.type === "TSInterfaceDeclaration" || node.type === "TSTypeAliasDeclaration") {
      found.set(nameOf(node["id"]), node);
    }
  }
  return found;
}

function nameOf(node: unknown): string {
  return (node as { name: string }).name;
}

const types = declarationsIn("model/types.ts");

/** Valid values of fields that accept only certain texts, by field name. */
const samples: Readonly<Record<string, string>> = {
  raw: "aGVsbG8=",
  url: "https://files.example.com/a.txt",
  mediaType: "text/plain",
  acceptedOutputModes: "text/plain",
};

/** The type of the field `name` as a shape. */
function shapeOf(type: Node, name: string): Shape {
  switch (type.type) {
    case "TSStringKeyword":
      return { kind: "string", sample: samples[name] ?? `some-${name}` };
    case "TSNumberKeyword":
      return { kind: "number", sample: 1 };
    case "TSBooleanKeyword":
      return { kind: "boolean", sample: false };
    case "TSTypeOperator":
      return shapeOf(type["typeAnnotation"] as Node, name);
    case "TSArrayType":
      return { kind: "list", items: alternativesOf(type["elementType"] as Node, name) };
    case "TSTypeReference":
      return shapeNamed(nameOf(type["typeName"]), name);
    default:
      throw new Error(`A field of type ${type.type}: add how it is damaged`);
  }
}

function alternativesOf(type: Node, name: string): readonly Shape[] {
  const declared = type.type === "TSTypeReference" ? types.get(nameOf(type["typeName"])) : undefined;
  const alias = declared?.type === "TSTypeAliasDeclaration" ? (declared["typeAnnotation"] as Node) : undefined;
  if (alias?.type !== "TSUnionType") return [shapeOf(type, name)];
  return (alias["types"] as Node[]).map((each) => shapeOf(each, name));
}

function shapeNamed(type: string, name: string): Shape {
  if (type === "JsonObject") return { kind: "json", sample: { note: "any" } };
  if (type === "JsonValue") return { kind: "json", sample: [1, "two", null] };
  if (type === "Timestamp") return { kind: "string", sample: "2026-01-31T12:00:00.000Z" };
  const declared = types.get(type);
  if (declared === undefined) throw new Error(`The type ${type} does not exist`);
  if (declared.type === "TSInterfaceDeclaration") return { kind: "object", fields: fieldsOf(declared) };
  const alias = declared["typeAnnotation"] as Node;
  const [first] = alias.type === "TSUnionType" ? (alias["types"] as Node[]) : [alias];
  const literal = first?.["literal"] as { value?: unknown } | undefined;
  // In a union of names, the first one is a valid value.
  if (typeof literal?.value === "string") return { kind: "string", sample: literal.value };
  return shapeOf(alias, name);
}

function fieldsOf(declared: Node): ReadonlyMap<string, Field> {
  const fields = new Map<string, Field>();
  for (const base of (declared["extends"] as Node[] | undefined) ?? []) {
    const parent = types.get(nameOf(base["expression"]));
    if (parent !== undefined) for (const [name, field] of fieldsOf(parent)) fields.set(name, field);
  }
  for (const member of (declared["body"] as { body: Node[] }).body) {
    const name = nameOf(member["key"]);
    const type = (member["typeAnnotation"] as { typeAnnotation: Node }).typeAnnotation;
    if (type.type === "TSNeverKeyword") continue;
    fields.set(name, { shape: shapeOf(type, name), optional: member["optional"] === true });
  }
  return fields;
}

/** The request of each operation. */
export const requests: ReadonlyMap<OperationName, Shape & { kind: "object" }> = new Map(
  ["UnaryOperations", "StreamOperations"].flatMap((table) => {
    const declared = declarationsIn("protocol/operations.ts").get(table);
    if (declared === undefined) throw new Error(`The table ${table} does not exist`);
    // Skips extension methods, which have no name here, and accept any object.
    const rows = (declared["body"] as { body: Node[] }).body.filter(({ type }) => type === "TSPropertySignature");
    return rows.map((row) => {
      const { members } = (row["typeAnnotation"] as { typeAnnotation: { members: Node[] } }).typeAnnotation;
      const request = members.find((member) => nameOf(member["key"]) === "request");
      if (request === undefined) throw new Error(`${nameOf(row["key"])} has no request`);
      const type = (request["typeAnnotation"] as { typeAnnotation: Node }).typeAnnotation;
      return [nameOf(row["key"]) as OperationName, shapeOf(type, "request") as Shape & { kind: "object" }] as const;
    });
  }),
);

/** All places in a value of this shape: members at each depth, and list elements. */
export function pathsOf(shape: Shape): Path[] {
  const inner = (key: string | number, each: Shape): Path[] => [[key], ...pathsOf(each).map((path) => [key, ...path])];
  if (shape.kind === "object") return [...shape.fields].flatMap(([name, field]) => inner(name, field.shape));
  if (shape.kind === "list") return shape.items.flatMap((item, index) => inner(index, item));
  return [];
}

export function shapeAt(shape: Shape, [key, ...rest]: Path): Shape {
  if (key === undefined) return shape;
  const inner = shape.kind === "object" ? shape.fields.get(String(key))?.shape : undefined;
  const item = shape.kind === "list" ? shape.items[Number(key)] : undefined;
  const found = inner ?? item;
  if (found === undefined) throw new Error(`There is nothing at ${String(key)}`);
  return shapeAt(found, rest);
}

/**
 * A valid value of this shape with `put` at `path`. It has the required members and those on the path. In a list of alternatives
 * it has the one on the path, or else the first one.
 */
export function build(shape: Shape, path: Path | undefined, put: (value: unknown) => unknown): unknown {
  if (path?.length === 0) return put(build(shape, undefined, put));
  const [key, ...rest] = path ?? [];
  if (shape.kind === "object") {
    return Object.fromEntries(
      [...shape.fields]
        .filter(([name, { optional }]) => !optional || name === key)
        .map(([name, field]) => [name, build(field.shape, name === key ? rest : undefined, put)]),
    );
  }
  if (shape.kind === "list") {
    const item = shape.items[Number(key ?? 0)];
    return item === undefined ? [] : [build(item, key === undefined ? undefined : rest, put)];
  }
  return shape.sample;
}

/** A value with each field and each alternative. */
export function complete(shape: Shape): unknown {
  if (shape.kind === "object") {
    return Object.fromEntries([...shape.fields].map(([name, field]) => [name, complete(field.shape)]));
  }
  return shape.kind === "list" ? shape.items.map(complete) : shape.sample;
}

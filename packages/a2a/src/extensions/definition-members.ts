import { nearestOf } from "../model/options.ts";
import { isObject } from "../model/schema.ts";
import { hooks } from "./definition.ts";
import { about, type Problems } from "./problems.ts";
import { isSchema } from "./values.ts";

/* Members of a definition that there are not. From JavaScript a misspelt one would do nothing, and nobody would say so. */

const ofExtension: readonly string[] = [
  "uri",
  "description",
  "required",
  "params",
  "kind",
  "requires",
  "paramsSchema",
  "metadata",
  "data",
  "subStates",
  "methods",
  "wakeRows",
  "searchesTasks",
  "~types",
  ...hooks,
];
const ofField = ["key", "schema", "volatile"];
const ofPart = ["matches", "mediaType", "schema"];
const ofSubState = ["state", "key", "value"];
const ofMethod = ["request", "response", "idempotent", "jsonrpc", "rest", "grpc", "onCall"];

/** Members of a definition that are none, each with the one that was probably meant. */
export function unknownMembers(definition: object): Problems {
  const { metadata, data, subStates, methods } = definition as Readonly<Record<string, unknown>>;
  return [
    ...unknownOf(definition, "", ofExtension),
    ...entriesOf(metadata).flatMap(([place, fields]) =>
      entriesOf(fields).flatMap(([name, field]) =>
        isSchema(field) ? [] : unknownOf(field, `metadata.${place}.${name}.`, ofField),
      ),
    ),
    ...entriesOf(data).flatMap(([name, part]) => unknownOf(part, `data.${name}.`, ofPart)),
    ...entriesOf(subStates).flatMap(([name, subState]) => unknownOf(subState, `subStates.${name}.`, ofSubState)),
    ...entriesOf(methods).flatMap(([name, method]) => unknownOf(method, `methods[${JSON.stringify(name)}].`, ofMethod)),
  ];
}

function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  return isObject(value) ? Object.entries(value) : [];
}

function unknownOf(value: unknown, path: string, known: readonly string[]): Problems {
  return entriesOf(value)
    .filter(([name]) => !known.includes(name))
    .flatMap(([name]) => {
      const meant = nearestOf(name, known);
      return about(path + name, meant === "" ? "is no member of a definition" : `is no member: ${meant} is meant`);
    });
}

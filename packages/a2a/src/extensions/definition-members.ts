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
      return about(
        path + name,
        meant === undefined ? "is no member of a definition" : `is no member: ${meant} is meant`,
      );
    });
}

/** The names that are nearest: a third of their letters away at most, or two of five. */
function nearestOf(name: string, known: readonly string[]): string | undefined {
  const near = known
    .map((each) => ({ each, distance: distanceOf(name.toLowerCase().slice(0, 40), each.toLowerCase()) }))
    .filter(({ each, distance }) => distance <= Math.max(each.length / 3, each.length > 4 ? 2 : 1));
  if (near.length === 0) return undefined;
  const least = Math.min(...near.map(({ distance }) => distance));
  return near.flatMap(({ each, distance }) => (distance === least ? [each] : [])).join(" or ");
}

/** How many letters have to be added, removed or replaced to make one word of the other. */
function distanceOf(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [at, letter] of Array.from(one).entries()) {
    const next = [at + 1];
    for (let to = 0; to < other.length; to += 1) {
      const replaced = (row[to] ?? 0) + Number(letter !== other[to]);
      next.push(Math.min(replaced, (row[to + 1] ?? 0) + 1, (next[to] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}

import type { Json, JsonMap } from "./format.ts";
import { isMap } from "./path.ts";

/** A file of tests is wrong; the message says where. */
export class FormatError extends Error {}

/** Reads a map of a file strictly. An unknown key is an error, since a misspelled check would never be made. */
export class StrictMap {
  readonly #map: JsonMap;
  readonly #read = new Set<string>();
  readonly where: string;

  constructor(value: Json | undefined, where: string) {
    if (!isMap(value)) throw new FormatError(`${where} is not a map`);
    this.#map = value;
    this.where = where;
  }

  get keys(): readonly string[] {
    return Object.keys(this.#map);
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#map, key);
  }

  any(key: string): Json | undefined {
    this.#read.add(key);
    return this.has(key) ? this.#map[key] : undefined;
  }

  fail(key: string, what: string): never {
    throw new FormatError(`${this.where}.${key} ${what}`);
  }

  #optional<T>(key: string, what: string, is: (value: Json) => value is Json & T): T | undefined {
    const value = this.any(key);
    return value === undefined || is(value) ? value : this.fail(key, `is not ${what}`);
  }

  text(key: string): string | undefined {
    return this.#optional(key, "text", (value) => typeof value === "string");
  }

  required(key: string): string {
    return this.text(key) ?? this.fail(key, "is missing");
  }

  number(key: string): number | undefined {
    return this.#optional(key, "a number", (value) => typeof value === "number");
  }

  flag(key: string): boolean {
    return this.#optional(key, "true or false", (value) => typeof value === "boolean") ?? false;
  }

  map(key: string): JsonMap {
    return this.#optional(key, "a map", (value): value is JsonMap => isMap(value)) ?? {};
  }

  list(key: string): readonly Json[] {
    return this.#optional(key, "a list", (value): value is readonly Json[] => Array.isArray(value)) ?? [];
  }

  texts(key: string): readonly string[] {
    return this.list(key).map((one, at) => (typeof one === "string" ? one : this.fail(`${key}[${at}]`, "is not text")));
  }

  textMap(key: string): Readonly<Record<string, string>> {
    return Object.fromEntries(
      Object.entries(this.map(key)).map(([name, value]) => [
        name,
        typeof value === "string" ? value : this.fail(`${key}.${name}`, "is not text"),
      ]),
    );
  }

  choice<T extends string>(key: string, choices: readonly T[]): T | undefined {
    const value = this.text(key);
    return value === undefined
      ? undefined
      : (choices.find((one) => one === value) ?? this.fail(key, `is none of ${choices.join(", ")}`));
  }

  choices<T extends string>(key: string, choices: readonly T[]): readonly T[] {
    return this.texts(key).map(
      (value) => choices.find((one) => one === value) ?? this.fail(key, `: ${value} is none of ${choices.join(", ")}`),
    );
  }

  submap(key: string): StrictMap | undefined {
    const value = this.any(key);
    return value === undefined ? undefined : new StrictMap(value, `${this.where}.${key}`);
  }

  submaps(key: string): readonly StrictMap[] {
    return this.list(key).map((one, at) => new StrictMap(one, `${this.where}.${key}[${at}]`));
  }

  /** Throws where the map has a key that was not read. */
  done(): void {
    const strange = this.keys.find((key) => !this.#read.has(key));
    if (strange !== undefined) this.fail(strange, "is not known");
  }

  /** The members that were not read. */
  rest(): JsonMap {
    return Object.fromEntries(Object.entries(this.#map).filter(([key]) => !this.#read.has(key)));
  }
}

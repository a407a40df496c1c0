import { isList, isMap } from "./values.ts";
import type { Json, JsonMap } from "./format.ts";

/** A test file is invalid. The message names the location. */
export class FormatError extends Error {}

/** Reads a map strictly: an unknown key is an error, because a misspelled check would never run. */
export class StrictMap {
  readonly #map: JsonMap;
  readonly #read = new Set<string>();
  readonly #where: string;

  private constructor(value: Json | undefined, where: string) {
    if (!isMap(value)) throw new FormatError(`${where} must be a map`);
    this.#map = value;
    this.#where = where;
  }

  /** Reads a whole map. Throws FormatError if `read` does not read all keys. */
  static read<T>(value: Json | undefined, where: string, read: (map: StrictMap) => T): T {
    const map = new StrictMap(value, where);
    const result = read(map);
    const [unknown] = Object.keys(map.takeRest());
    return unknown === undefined ? result : map.fail(unknown, "is not a known key");
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#map, key);
  }

  any(key: string): Json | undefined {
    this.#read.add(key);
    return this.has(key) ? this.#map[key] : undefined;
  }

  fail(key: string, what: string): never {
    throw new FormatError(`${this.#where}.${key} ${what}`);
  }

  #optional<T>(key: string, what: string, is: (value: Json) => value is Json & T): T | undefined {
    const value = this.any(key);
    return value === undefined || is(value) ? value : this.fail(key, `must be ${what}`);
  }

  text(key: string): string | undefined {
    return this.#optional(key, "a string", (value) => typeof value === "string");
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
    return this.#optional(key, "a list", isList) ?? [];
  }

  texts(key: string): readonly string[] {
    return this.list(key).map((one, at) =>
      typeof one === "string" ? one : this.fail(`${key}[${at}]`, "must be a string"),
    );
  }

  textMap(key: string): Readonly<Record<string, string>> {
    return Object.fromEntries(
      Object.entries(this.map(key)).map(([name, value]) => [
        name,
        typeof value === "string" ? value : this.fail(`${key}.${name}`, "must be a string"),
      ]),
    );
  }

  choice<T extends string>(key: string, choices: readonly T[]): T | undefined {
    const value = this.text(key);
    return value === undefined ? undefined : this.#chosen(key, value, choices);
  }

  choices<T extends string>(key: string, choices: readonly T[]): readonly T[] {
    return this.texts(key).map((value) => this.#chosen(key, value, choices));
  }

  #chosen<T extends string>(key: string, value: string, choices: readonly T[]): T {
    return choices.find((one) => one === value) ?? this.fail(key, `must be one of ${choices.join(", ")}; got ${value}`);
  }

  /** Reads a nested map. */
  nested<T>(key: string, read: (map: StrictMap) => T): T | undefined {
    const value = this.any(key);
    return value === undefined ? undefined : StrictMap.read(value, `${this.#where}.${key}`, read);
  }

  /** Reads each map in a list. */
  each<T>(key: string, read: (map: StrictMap, at: number) => T): readonly T[] {
    return this.list(key).map((one, at) => StrictMap.read(one, `${this.#where}.${key}[${at}]`, (map) => read(map, at)));
  }

  /** Reads all members that have not been read. */
  takeRest(): JsonMap {
    const rest = Object.fromEntries(Object.entries(this.#map).filter(([key]) => !this.#read.has(key)));
    for (const key of Object.keys(rest)) this.#read.add(key);
    return rest;
  }
}

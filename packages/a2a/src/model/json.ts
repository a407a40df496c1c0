/* Types for JSON: for values that were read, and for values that can be written. */

/** Any JSON value. */
export type JsonValue = string | number | boolean | null | JsonObject | readonly JsonValue[];

/** A JSON object. `metadata` is one: a map from keys to any JSON (A2A 1.0 §3.2.5). */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Every function and every class has this member. */
interface NoFunction {
  readonly [Symbol.hasInstance]?: never;
}

interface NoList {
  readonly [Symbol.iterator]?: never;
}

/**
 * A value that can be written as JSON: a `JsonValue`, or an object or a list whose type was declared by hand, such as an
 * interface. Members may be optional, and of type `unknown`, because answers of many SDKs have such members: they are checked at runtime,
 * and the error names the path of a value that is not JSON. Functions, `bigint`, symbols, `undefined` and objects with methods (a
 * `Date`, a `Map`, bytes) are not JSON. Your own functions can accept such values as `<T extends JsonLike<T>>(value: T)`.
 *
 * @example
 * ```ts
 * interface Forecast {
 *   city: string;
 *   degrees?: number;
 * }
 * function forecastPart(forecast: Forecast) {
 *   return data(forecast);
 * }
 * function resultPart<T extends JsonLike<T>>(result: T) {
 *   return data({ result });
 * }
 * ```
 */
export type JsonLike<T> = JsonValue | (NoFunction & object & JsonMembers<T>);

/** An object that can be written as JSON, such as `metadata`: see `JsonLike`. */
export type JsonObjectLike<T> = JsonObject | (NoFunction & NoList & object & JsonMembers<T>);

/**
 * The members of an object or a list. A mapped type, because a constraint cannot be a recursive conditional type. `JsonValue` and `unknown`
 * are accepted unchecked. `undefined` members are omitted from the JSON.
 */
type JsonMembers<T> = {
  readonly [K in keyof T]: K extends symbol
    ? unknown
    : | (T[K] extends JsonValue ? unknown : unknown extends T[K] ? unknown : JsonLike<T[K]>)
      | (T extends readonly unknown[] ? never : undefined);
};

import { check, type SchemaIssue, type StandardSchema } from "../model/index.ts";
import type { Schema } from "../model/schema.ts";

/**
 * A Standard Schema of a schema of this package, for the extensions that are packaged with it: they take no library. What it checks stays
 * as it is. The result is a copy without members that the schema does not know; free JSON in it is shared.
 *
 * @example
 * ```ts
 * import { object, required, string } from "../../model/schema.ts";
 *
 * const quote = standardSchema(object<{ text: string }>({ text: required(string) }));
 * ```
 */
export function standardSchema<T>(schema: Schema<T>): StandardSchema<T> {
  return {
    "~standard": {
      version: 1,
      vendor: "parley",
      validate(value) {
        const checked = check(schema, value, "copy");
        return checked.ok
          ? { value: checked.value }
          : {
              issues: checked.violations.map(({ field, description }): SchemaIssue => ({
                message: description,
                path: pathOf(field),
              })),
            };
      },
    },
  };
}

/** The steps of a path such as `steps[0].name`. */
function pathOf(field: string): readonly PropertyKey[] {
  return Array.from(field.matchAll(/\[(\d+)\]|[^.[\]]+/g), ([name, index]) =>
    index === undefined ? name : Number(index),
  );
}

import type { StandardSchema } from "@parley/a2a/internal/model/index";
import type { Check } from "./check.ts";

/** A Standard Schema of a check. `read` makes of a value that fits what its readers get. */
export function schemaOf<Value>(check: Check, read: (value: unknown) => Value): StandardSchema<Value> {
  return {
    "~standard": {
      version: 1,
      vendor: "parley",
      validate(value) {
        const fault = check(value);
        if (fault === undefined) return { value: read(value) };
        return { issues: [{ message: fault.message, path: fault.path.split("/").slice(1).map(nameOf) }] };
      },
    },
  };
}

/** A step of a JSON pointer, as the name that it stands for. */
function nameOf(step: string): PropertyKey {
  return /^\d+$/.test(step) ? Number(step) : step.replaceAll("~1", "/").replaceAll("~0", "~");
}

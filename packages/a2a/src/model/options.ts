import { invalidParams } from "./errors.ts";

/** The names of options. Its type finds those that are missing. */
export type OptionNames<Options> = Readonly<Record<keyof Options, 1>>;

/**
 * Refuses options that there are not: from JavaScript a misspelt one would do nothing, and nobody would say so.
 *
 * @param of - What the options are of: `serve()`.
 * @param hint - What the error adds, by the wrong name and the names that there are. Default: these.
 * @throws A2AError `InvalidParams`.
 */
export function checkOptions(
  of: string,
  given: object,
  known: object,
  hint = (_name: string, names: readonly string[]): string => `. There are ${names.join(", ")}`,
): void {
  const names = Object.keys(known);
  for (const [field, value] of Object.entries(given)) {
    if (value !== undefined && !names.includes(field))
      throw invalidParams([{ field, description: `is no option of ${of}${hint(field, names)}` }]);
  }
}

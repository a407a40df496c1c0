import { invalidParams } from "./errors.ts";
import { isObject } from "./schema.ts";

/** The names of options. The type makes the compiler report missing ones. */
export type OptionNames<Options> = Readonly<Record<keyof Options, 1>>;

/**
 * Rejects unknown options, and values other than objects. Without types, a misspelled option would silently do nothing.
 *
 * @param of - The function with these options: `serve()`.
 * @param hint - Returns a hint for the error, from the wrong name and the known names. Default: lists the known names.
 * @throws A2AError `InvalidParams`. It does not show a value, which may be a secret.
 */
export function checkOptions(
  of: string,
  given: unknown,
  known: object,
  hint = (_name: string, names: readonly string[]): string => `. The options are ${names.join(", ")}`,
): void {
  const names = Object.keys(known);
  if (!isObject(given)) throw invalidParams([{ field: of, description: `needs an object${hint("", names)}` }]);
  for (const [field, value] of Object.entries(given)) {
    if (value !== undefined && !names.includes(field))
      throw invalidParams([{ field, description: `is not an option of ${of}${hint(field, names)}` }]);
  }
}

/** Similar known names: at most a third of the letters differ, or two of five. `""`: no similar name. */
export function nearestOf(name: string, known: readonly string[]): string {
  const wanted = name.toLowerCase().slice(0, 40);
  let near: readonly string[] = [];
  for (let letters = 0; near.length === 0 && letters < 9; letters += 1) {
    near = known.filter(
      ({ length }, at) =>
        letters <= Math.max(length / 3, length > 4 ? 2 : 1) && isNear(wanted, (known[at] ?? "").toLowerCase(), letters),
    );
  }
  return near.join(" or ");
}

/** Whether at most `edits` edits turn one word into the other. An edit adds, removes or replaces a letter, or swaps two neighbors. */
function isNear(one: string, other: string, edits: number): boolean {
  if (one === other || edits < 0) return edits >= 0;
  const [rest, otherRest] = [one.slice(1), other.slice(1)];
  if (one[0] === other[0]) return isNear(rest, otherRest, edits);
  const isSwapped = one.length > 1 && one[0] === other[1] && one[1] === other[0];
  return (
    isNear(rest, otherRest, edits - 1) ||
    isNear(one, otherRest, edits - 1) ||
    isNear(rest, other, edits - 1) ||
    (isSwapped && isNear(one.slice(2), other.slice(2), edits - 1))
  );
}

/** The end of an error about an unknown name: the name that was probably meant, or all known names. */
export function meantBy(name: string, known: readonly string[]): string {
  const near = nearestOf(name, known);
  return near === "" ? `. The options are ${known.join(", ")}` : `: did you mean ${near}?`;
}

import { utf8Length } from "@parley/a2a/internal/base/index";
import { stepBounds } from "@parley/a2a/internal/protocol/index";
import { featureBounds, stepFeature, type FeatureEffect, type FeatureRow } from "../../store/index.ts";
import { isBegun, scopeOf, type ScopeName } from "./step-rows.ts";

/*
 * Results of steps and waits as rows. They are lines of one text, which is cut into as few rows as possible: a task has few rows, and a
 * turn may have many steps.
 */

/** Fewer bytes are not deleted by themselves. */
const minForgotten = 16 << 10;

/** The results of one scope. */
export class Remembered {
  readonly #scope: ScopeName;
  /** Lines by what they are the result of. */
  readonly #lines = new Map<string, string>();
  /** Number and text of the last row. */
  #last = 0;
  #text = "";
  /** Of all lines, in bytes. */
  #bytes = 0;

  /** `rows`: those of `stepFeature`, of all scopes. */
  constructor(scope: ScopeName, rows: readonly FeatureRow[]) {
    this.#scope = scope;
    const own = rows
      .filter(({ key }) => scopeOf(key) === scope && !isBegun(key))
      .map(({ key, value }) => ({ number: Number(key.slice(key.indexOf(".") + 1)), text: JSON.parse(value) as string }))
      .sort((a, b) => a.number - b.number);
    const last = own.at(-1);
    if (last === undefined) return;
    this.#last = last.number;
    this.#text = last.text;
    const all = own.map(({ text }) => text).join("");
    this.#bytes = utf8Length(all);
    for (const line of all.split("\n")) if (line !== "") this.#lines.set((JSON.parse(line) as [string])[0], line);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A result as JSON text, empty for nothing. */
  find(name: string): string | undefined {
    const line = this.#lines.get(name);
    if (line === undefined) return undefined;
    const [, value] = JSON.parse(line) as [string, unknown?];
    return value === undefined ? "" : JSON.stringify(value);
  }

  /** What stores a result. */
  add(name: string, json: string): readonly FeatureEffect[] {
    const line = lineOf(name, json);
    this.#lines.set(name, line);
    this.#bytes += utf8Length(line);
    return this.#write(this.#text + line);
  }

  /** What deletes results. Nothing, while these are few: the others are written anew. */
  forget(isOver: (name: string) => boolean): readonly FeatureEffect[] {
    const over = [...this.#lines].filter(([name]) => isOver(name));
    const freed = over.reduce((sum, [, line]) => sum + utf8Length(line), 0);
    if (freed < Math.max(minForgotten, this.#bytes / 4)) return [];
    for (const [name] of over) this.#lines.delete(name);
    this.#bytes -= freed;
    const before = this.#last;
    this.#last = 0;
    const effects = [...this.#write([...this.#lines.values()].join(""))];
    for (let row = this.#last + 1; row <= before; row += 1) {
      effects.push({ effect: "feature", op: "delete", feature: stepFeature, key: `${this.#scope}.${row}` });
    }
    return effects;
  }

  #write(text: string): readonly FeatureEffect[] {
    const effects: FeatureEffect[] = [];
    for (let rest = text; ; this.#last += 1) {
      this.#text = firstRow(rest);
      rest = rest.slice(this.#text.length);
      const value = JSON.stringify(this.#text);
      effects.push({ effect: "feature", op: "set", feature: stepFeature, key: `${this.#scope}.${this.#last}`, value });
      if (rest === "") return effects;
    }
  }
}

function lineOf(name: string, json: string): string {
  return `[${JSON.stringify(name)}${json === "" ? "" : `,${json}`}]\n`;
}

/** Bytes that the result of a step may take, where so many are stored. */
export function roomFor(name: string, stored: number): number {
  return Math.max(0, Math.min(stepBounds.result, stepBounds.results - stored - utf8Length(lineOf(name, "")) - 1));
}

/** How many characters of a text to try as a row. A character takes at most three bytes as JSON within JSON. */
const rowSizes = [30_000, 15_000, Math.floor(featureBounds.value / 3) - 2];

function firstRow(text: string): string {
  for (const size of rowSizes) {
    const row = text.slice(0, size);
    if (utf8Length(JSON.stringify(row)) <= featureBounds.value) return row;
  }
  throw new RangeError("A row is too large");
}

/** What deletes the rows of turns before this one. */
export function forgetEarlier(rows: readonly FeatureRow[], turn: number): readonly FeatureEffect[] {
  return rows
    .filter(({ key }) => scopeOf(key) !== "task" && Number(scopeOf(key)) < turn)
    .map(({ key }) => ({ effect: "feature", op: "delete", feature: stepFeature, key }));
}

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { folder } from "./expected.ts";

/** What A2A 1.0 says that a server must do, in §3 to §5 and §9 to §11, as far as one can see it from outside. */
export interface Requirement {
  /** The section, and a word: `3.1.2-first`. */
  readonly id: string;
  readonly requirement: string;
  /** Tests: ids of our own ACTS suites, or `FILE: TITLE`. */
  readonly proof?: readonly string[];
  /** What has to be built before there can be a proof. */
  readonly waitsFor?: string;
  /** How it is to be understood. */
  readonly note?: string;
}

const root = join(folder, "..");

export function readRequirements(): readonly Requirement[] {
  return JSON.parse(readFileSync(join(folder, "requirements.json"), "utf8")) as readonly Requirement[];
}

/** What is wrong with the list, in sentences: rows without a proof, and proofs that are not there. */
export function faults(rows: readonly Requirement[]): readonly string[] {
  const suites = join(root, "packages/conform/suites");
  const ids = new Set(
    readdirSync(suites)
      .flatMap((file) => [...readFileSync(join(suites, file), "utf8").matchAll(/^ +- id: ([A-Z]+-[A-Z]+-\d+)$/gm)])
      .map(([, id]) => id),
  );
  const files = new Map<string, string>();
  const textOf = (file: string): string => {
    const path = join(root, file);
    const text = files.get(file) ?? (existsSync(path) ? readFileSync(path, "utf8") : "");
    files.set(file, text);
    return text;
  };
  const exists = (proof: string): boolean => {
    const [, file, title] = /^(\S+\.test\.ts): (.+)$/.exec(proof) ?? [];
    if (file === undefined || title === undefined) return ids.has(proof);
    return (
      ['"', "`"].some((quote) => textOf(file).includes(`(${quote}${title}${quote},`)) ||
      isTableTitle(textOf(file), title)
    );
  };
  return rows.flatMap(({ id, proof = [], waitsFor }, at) => [
    ...(/^(?:3|4|5|9|10|11)(?:\.\d+)*-[a-z-]+$/.test(id) ? [] : [`${id} names no section`]),
    ...(rows.findIndex((row) => row.id === id) === at ? [] : [`${id} is there twice`]),
    ...(proof.length === 0 && waitsFor === undefined ? [`${id} has no proof`] : []),
    ...(proof.length > 0 && waitsFor !== undefined ? [`${id} is proven and waits for ${waitsFor}`] : []),
    ...proof.filter((each) => !exists(each)).map((each) => `${id} is proven by what is not there: ${each}`),
  ]);
}

/** Titles of `test.each(…)(…)` may stand on a line of their own. */
function isTableTitle(text: string, title: string): boolean {
  return text.split("\n").some((line) => line.trim() === `"${title}",`);
}

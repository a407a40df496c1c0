import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { folder } from "./expected.ts";

/** A requirement of A2A 1.0 (§3 to §5 and §9 to §11) on servers that can be observed from outside. */
export interface Requirement {
  /** The section, and a word: `3.1.2-first`. */
  readonly id: string;
  readonly requirement: string;
  /** Tests of the packages, `FILE: TITLE`, in addition to the tests of our ACTS suites that name the requirement. */
  readonly proof?: readonly string[];
  /** The missing feature, without which there is no proof. */
  readonly waitsFor?: string;
  /** Our interpretation of the sentence in the specification. */
  readonly note?: string;
}

const root = join(folder, "..");

export function readRequirements(): readonly Requirement[] {
  return JSON.parse(readFileSync(join(folder, "requirements.json"), "utf8")) as readonly Requirement[];
}

/** The used members of a test in our own ACTS suites. */
interface SuiteTest {
  readonly id: string;
  readonly requirements?: readonly string[];
}

/** The tests of our own ACTS suites that name each requirement. */
function readClaims(): ReadonlyMap<string, readonly string[]> {
  const folder = join(root, "packages/conform/suites");
  const tests = readdirSync(folder).flatMap((file) => {
    const { suites } = parse(readFileSync(join(folder, file), "utf8")) as {
      readonly suites: readonly { readonly tests: readonly SuiteTest[] }[];
    };
    return suites.flatMap((suite) => suite.tests);
  });
  const claims = new Map<string, string[]>();
  for (const { id, requirements = [] } of tests) {
    for (const one of requirements) claims.set(one, [...(claims.get(one) ?? []), id]);
  }
  return claims;
}

/** The errors in the list, in sentences: rows without a proof, and proofs or rows that do not exist. */
export function faults(
  rows: readonly Requirement[],
  claims: ReadonlyMap<string, readonly string[]> = readClaims(),
): readonly string[] {
  const files = new Map<string, string>();
  const textOf = (file: string): string => {
    const path = join(root, file);
    const text = files.get(file) ?? (existsSync(path) ? readFileSync(path, "utf8") : "");
    files.set(file, text);
    return text;
  };
  const exists = (proof: string): boolean => {
    const [, file, title] = /^(\S+\.test\.ts): (.+)$/.exec(proof) ?? [];
    if (file === undefined || title === undefined) return false;
    return (
      ['"', "`"].some((quote) => textOf(file).includes(`(${quote}${title}${quote},`)) ||
      isTableTitle(textOf(file), title)
    );
  };
  const unlisted = [...claims.keys()].filter((id) => !rows.some((row) => row.id === id));
  const ofRow = ({ id, proof = [], waitsFor }: Requirement, at: number): readonly string[] => {
    const proofs = [...proof, ...(claims.get(id) ?? [])];
    return [
      ...(/^(?:3|4|5|9|10|11)(?:\.\d+)*-[a-z-]+$/.test(id) ? [] : [`${id} does not begin with a section`]),
      ...(rows.findIndex((row) => row.id === id) === at ? [] : [`${id} is in the list twice`]),
      ...(proofs.length === 0 && waitsFor === undefined ? [`${id} has no proof`] : []),
      ...(proofs.length > 0 && waitsFor !== undefined ? [`${id} has a proof and waits for ${waitsFor}`] : []),
      ...proof.filter((each) => !exists(each)).map((each) => `${id} names a proof that does not exist: ${each}`),
    ];
  };
  return [
    ...rows.flatMap(ofRow),
    ...unlisted.map((id) => `${id} is named by ${(claims.get(id) ?? []).join(", ")}, but is not in the list`),
  ];
}

/** Whether the text has the title on its own line, as oxfmt breaks `test.each(…)(…)`. */
function isTableTitle(text: string, title: string): boolean {
  return text.split("\n").some((line) => line.trim() === `"${title}",`);
}

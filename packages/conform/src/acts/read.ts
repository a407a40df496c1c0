import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { parseDocument } from "yaml";
import { fileURLToPath } from "node:url";
import { getSystemErrorMap } from "node:util";
import { ConformError } from "../report/report.ts";
import type { Json, Suite } from "./format.ts";
import { readSuite } from "./read-test.ts";
import { FormatError, StrictMap } from "./strict-map.ts";

/**
 * Reads tests from a file, or from all `*.acts.yaml`, `*.acts.yml` and `*.acts.json` in a folder. A file that others include
 * is read once.
 *
 * @throws ConformError (`InvalidTests`) where a file cannot be read, or has a word that the runner does not know: it would be
 *   a check that nobody makes.
 */
export async function readSuites(path: string | URL): Promise<readonly Suite[]> {
  const place = typeof path === "string" ? path : fileURLToPath(path);
  const files = await filesOf(place);
  const seen = new Set<string>();
  const suites: Suite[] = [];
  for (const file of files) suites.push(...(await readFileSuites(file, seen)));
  return unique(suites, place);
}

/** The tests of this package. */
export function ownSuites(): Promise<readonly Suite[]> {
  return readSuites(new URL("../../suites", import.meta.url));
}

/**
 * Reads tests from the text of one file, YAML or JSON. It may include no other file.
 *
 * @param name - What errors call the text.
 * @throws ConformError (`InvalidTests`) where it has a word that the runner does not know.
 */
export function parseSuites(text: string, name: string = "the tests"): readonly Suite[] {
  try {
    const { suites, include } = parseFile(text, name);
    if (include.length > 0) throw new FormatError(`${name}.include needs files: use readSuites`);
    return unique(suites, name);
  } catch (error) {
    if (error instanceof FormatError) throw new ConformError("InvalidTests", error.message, { cause: error });
    throw error;
  }
}

function unique(suites: readonly Suite[], name: string): readonly Suite[] {
  const ids = suites.flatMap(({ tests }) => tests.map(({ id }) => id));
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) throw new ConformError("InvalidTests", `${name}: two tests have the id ${twice}`);
  return suites;
}

/** Why a file cannot be read, in the system's words. */
function fileReason(error: unknown): string {
  const errno = error instanceof Error && "errno" in error ? Number(error.errno) : 0;
  return getSystemErrorMap().get(errno)?.[1] ?? (error instanceof Error ? error.message : String(error));
}

async function filesOf(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => /\.acts\.(?:ya?ml|json)$/.test(name)).sort();
    if (names.length === 0) throw new ConformError("InvalidTests", `${path} holds no *.acts.yaml`);
    return names.map((name) => join(path, name));
  } catch (error) {
    if (error instanceof ConformError) throw error;
    throw new ConformError("InvalidTests", `cannot read ${path}: ${fileReason(error)}`, { cause: error });
  }
}

async function readFileSuites(file: string, seen: Set<string>): Promise<readonly Suite[]> {
  const path = resolve(file);
  if (seen.has(path)) return [];
  seen.add(path);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new ConformError("InvalidTests", `cannot read ${file}: ${fileReason(error)}`, { cause: error });
  }
  try {
    const { suites, include } = parseFile(text, basename(file));
    const included: Suite[] = [];
    for (const name of include) included.push(...(await readFileSuites(join(dirname(path), name), seen)));
    return [...suites, ...included];
  } catch (error) {
    if (error instanceof FormatError)
      throw new ConformError("InvalidTests", `${file}: ${error.message}`, { cause: error });
    throw error;
  }
}

/** Reads the text of one file; `where` begins what errors say. YAML 1.2, so JSON as well. */
function parseFile(
  text: string,
  where: string,
): { readonly suites: readonly Suite[]; readonly include: readonly string[] } {
  const yaml = parseDocument(text, { prettyErrors: true });
  const [error] = yaml.errors;
  if (error !== undefined) throw new FormatError(error.message);
  return StrictMap.read(yaml.toJS() as Json, where, (map) => {
    const format = map.required("acts_version");
    if (!/^1(?:\.|$)/.test(format)) map.fail("acts_version", `is ${format}: this runner reads version 1`);
    for (const key of ["spec_ref", "metadata"]) map.any(key);
    const version = map.required("spec_version").split(".", 2).join(".");
    const defaults = { version, variables: map.textMap("variables") };
    const suites = map.each("suites", (suite) => readSuite(suite, defaults));
    const include = map.texts("include");
    if (suites.length === 0 && include.length === 0) map.fail("suites", "is missing");
    return { suites, include };
  });
}

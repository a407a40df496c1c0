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
 * Reads tests from a file, or from all `*.acts.yaml`, `*.acts.yml` and `*.acts.json` files in a folder. A file that several files include
 * is read once.
 *
 * @throws ConformError (`InvalidTests`) if a file cannot be read or contains an unknown key. The runner would ignore a check under such a key.
 */
export async function readSuites(path: string | URL): Promise<readonly Suite[]> {
  const place = typeof path === "string" ? path : fileURLToPath(path);
  const files = await filesOf(place);
  const seen = new Set<string>();
  const suites: Suite[] = [];
  for (const file of files) suites.push(...(await readFileSuites(file, seen)));
  return unique(suites, place);
}

/** The tests in this package. */
export function ownSuites(): Promise<readonly Suite[]> {
  return readSuites(new URL("../../suites", import.meta.url));
}

/**
 * Parses the text of one test file, in YAML or JSON. It must not include other files.
 *
 * @param name - Name of the text in errors.
 * @throws ConformError (`InvalidTests`) if the text contains an unknown key.
 */
export function parseSuites(text: string, name: string = "the tests"): readonly Suite[] {
  const { suites, include } = parseFile(text, name);
  if (include.length > 0) throw new ConformError("InvalidTests", `${name}.include requires files; use readSuites`);
  return unique(suites, name);
}

function unique(suites: readonly Suite[], name: string): readonly Suite[] {
  const ids = suites.flatMap(({ tests }) => tests.map(({ id }) => id));
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) throw new ConformError("InvalidTests", `${name}: two tests have the id ${twice}`);
  return suites;
}

/** The system's message for a failed file operation. */
function fileReason(error: unknown): string {
  const errno = error instanceof Error && "errno" in error ? Number(error.errno) : 0;
  return getSystemErrorMap().get(errno)?.[1] ?? (error instanceof Error ? error.message : String(error));
}

async function filesOf(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => /\.acts\.(?:ya?ml|json)$/.test(name)).sort();
    if (names.length === 0) throw new ConformError("InvalidTests", `${path} contains no *.acts.yaml files`);
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
  const { suites, include } = parseFile(text, basename(file), `${file}: `);
  const included: Suite[] = [];
  for (const name of include) included.push(...(await readFileSuites(join(dirname(path), name), seen)));
  return [...suites, ...included];
}

interface FileContent {
  readonly suites: readonly Suite[];
  readonly include: readonly string[];
}

/** Parses the text of one file. YAML 1.2 includes JSON. `where` names the text in errors, after `prefix`. */
function parseFile(text: string, where: string, prefix = ""): FileContent {
  try {
    const yaml = parseDocument(text, { prettyErrors: true });
    const [error] = yaml.errors;
    if (error !== undefined) throw new FormatError(error.message);
    const content = yaml.toJS() as Json;
    return StrictMap.read(content, where, readFileContent);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    throw new ConformError("InvalidTests", prefix + error.message, { cause: error });
  }
}

function readFileContent(map: StrictMap): FileContent {
  const format = map.required("acts_version");
  if (!/^1(?:\.|$)/.test(format)) map.fail("acts_version", `is ${format}; this runner reads version 1`);
  for (const key of ["spec_ref", "metadata"]) map.any(key);
  const version = map.required("spec_version").split(".", 2).join(".");
  const defaults = { version, variables: map.textMap("variables") };
  const suites = map.each("suites", (suite) => readSuite(suite, defaults));
  const include = map.texts("include");
  if (suites.length === 0 && include.length === 0) map.fail("suites", "is missing");
  return { suites, include };
}

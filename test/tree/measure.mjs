// Measures the sources of a repository: node test/tree/measure.mjs [FOLDER] [GLOB…]. test/tree.test.ts holds this tree to its limits.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseSync } from "oxc-parser";

/** @typedef {{ file: string, name: string, lines: number }} FunctionSize */

/**
 * @typedef {object} Measures
 * @property {number} files
 * @property {number} lines
 * @property {number} medianFile Lines.
 * @property {number} longestFile Lines.
 * @property {readonly FunctionSize[]} functions The longest first.
 * @property {number} casts `as` without `as const`, and `!`.
 * @property {readonly (readonly string[])[]} cycles Files that import each other, types included; the largest first.
 */

/** @typedef {{ type: string, start: number, end: number } & Record<string, unknown>} Node */

/** @param {unknown} value @returns {value is Node} */
const isNode = (value) => typeof value === "object" && value !== null && "type" in value;

/** @param {Node} node @param {(node: Node, parent: Node) => void} visit */
function walk(node, visit) {
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (!isNode(child)) continue;
      visit(child, node);
      walk(child, visit);
    }
  }
}

const functions = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

/** The name that a function is found by. @param {Node} node @param {Node} parent */
function nameOf(node, parent) {
  const named = /** @type {{ name?: string } | undefined} */ (node["id"] ?? parent["key"] ?? parent["id"]);
  return named?.name ?? "";
}

/**
 * The files that import each other. @param {ReadonlyMap<string, readonly string[]>} imports By file.
 * @returns {string[][]} Strongly connected components of more than one file (Tarjan).
 */
function cyclesOf(imports) {
  /** @type {Map<string, { index: number, low: number, open: boolean }>} */
  const seen = new Map();
  /** @type {string[]} */
  const stack = [];
  /** @type {string[][]} */
  const cycles = [];
  /** @param {string} file */
  const visit = (file) => {
    const own = { index: seen.size, low: seen.size, open: true };
    seen.set(file, own);
    stack.push(file);
    for (const next of imports.get(file) ?? []) {
      const known = seen.get(next) ?? visit(next);
      if (known.open) own.low = Math.min(own.low, known.low);
    }
    if (own.low === own.index) {
      const members = stack.splice(stack.indexOf(file));
      for (const member of members) Object.assign(seen.get(member) ?? {}, { open: false });
      if (members.length > 1) cycles.push(members);
    }
    return own;
  };
  for (const file of imports.keys()) if (!seen.has(file)) visit(file);
  return cycles;
}

/** @param {readonly number[]} values */
const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;

/** The file that a specifier means. @param {string} root @param {string} from @param {string} specifier */
function fileOf(root, from, specifier) {
  const [, parley, path] = /^@parley\/(\w+)\/internal\/(.*)$/.exec(specifier) ?? [];
  const target =
    parley === undefined ? resolve(dirname(from), specifier) : join(root, "packages", parley, "src", `${path}`);
  return [target.replace(/\.js$/, ".ts"), `${target}.ts`, join(target, "index.ts")].find((file) => existsSync(file));
}

/** @param {string} root @param {readonly string[]} globs Of sources. @returns {Measures} */
export function measure(root, globs) {
  const listed = execFileSync("git", ["ls-files", ...globs], { cwd: root, encoding: "utf8" })
    .trim()
    .split("\n");
  const files = listed.map((file) => join(root, file)).filter((file) => existsSync(file));
  /** @type {number[]} */
  const sizes = [];
  /** @type {FunctionSize[]} */
  const found = [];
  /** @type {Map<string, string[]>} */
  const imports = new Map();
  let casts = 0;
  for (const file of files) {
    const source = readFileSync(file, "utf8");
    const lineOf = (/** @type {number} */ offset) => source.slice(0, offset).split("\n").length;
    sizes.push(source.trimEnd().split("\n").length);
    const program = /** @type {Node} */ (/** @type {unknown} */ (parseSync(file, source).program));
    const path = relative(root, file);
    imports.set(path, []);
    walk(program, (node, parent) => {
      if (node.type === "TSNonNullExpression" || node.type === "TSAsExpression") {
        if (!source.slice(node.start, node.end).endsWith("as const")) casts += 1;
      }
      if (functions.has(node.type))
        found.push({ file: path, name: nameOf(node, parent), lines: lineOf(node.end) - lineOf(node.start) + 1 });
      const specifier = /** @type {{ value?: unknown } | undefined} */ (node["source"])?.value;
      if (typeof specifier !== "string" || node.type === "ImportExpression") return;
      const target = fileOf(root, file, specifier);
      if (target !== undefined) imports.get(path)?.push(relative(root, target));
    });
  }
  return {
    files: files.length,
    lines: sizes.reduce((sum, size) => sum + size, 0),
    medianFile: median(sizes),
    longestFile: Math.max(...sizes),
    functions: found.toSorted((one, other) => other.lines - one.lines),
    casts,
    cycles: cyclesOf(imports).toSorted((one, other) => other.length - one.length),
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [root = ".", ...globs] = process.argv.slice(2);
  const {
    functions: all,
    cycles,
    casts,
    ...sizes
  } = measure(resolve(root), globs.length > 0 ? globs : ["packages/*/src/*.ts"]);
  const lengths = all.map(({ lines }) => lines);
  console.log({
    ...sizes,
    functions: all.length,
    medianFunction: median(lengths),
    p90Function: lengths[Math.floor(lengths.length / 10)],
    longest: all.slice(0, 8).map(({ file, name, lines }) => `${lines} ${file} ${name}`),
    castsPer1000: Math.round((casts / sizes.lines) * 10_000) / 10,
    cycles: cycles.length,
    largestCycles: cycles.slice(0, 6),
  });
}

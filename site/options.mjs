// The options of functions, read from the comments of their types: docs/configuration.md shows them between two marks, and
// `npm run docs -- --index` writes them there.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "oxc-parser";
import { root } from "./places.mjs";

/**
 * @typedef {object} Option
 * @property {string} name
 * @property {string} type As the source has it.
 * @property {boolean} optional
 * @property {string} text What the comment says.
 *
 * @typedef {object} Base A type whose options this one has too.
 * @property {string} name
 * @property {readonly string[]} without The options that it does not take over.
 * @property {readonly string[] | undefined} only The options that it takes over, where it names them.
 *
 * @typedef {object} Options
 * @property {string} name Of the type.
 * @property {readonly Option[]} own
 * @property {readonly Base[]} bases
 * @property {readonly string[]} nested Other such types that its options have.
 */

/** Types that are options of something, by their names. */
const isOptions = /(?:Options|Limits|Policy|Rate|Files|Choice|SignCards|AgentMount)$/;

/** Every interface and object type of the packages that is a set of options. @returns {ReadonlyMap<string, Options>} */
export function allOptions() {
  /** @type {Map<string, Options>} */
  const found = new Map();
  for (const name of ["a2a", "server", "node", "sql", "grpc"]) {
    const folder = join(root, "packages", name, "src");
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
    for (const file of files.sort()) {
      for (const options of optionsIn(join(folder, file)))
        if (!found.has(options.name)) found.set(options.name, options);
    }
  }
  return found;
}

/** @param {string} file @returns {readonly Options[]} */
function optionsIn(file) {
  const source = readFileSync(file, "utf8");
  if (!/export interface \w*(?:Options|Limits|Policy|Rate|Files|Choice|SignCards|AgentMount)\b/.test(source)) return [];
  const { program, comments } = parseSync(file, source);
  return program.body.flatMap((statement) => {
    if (statement.type !== "ExportNamedDeclaration") return [];
    const declared = statement.declaration;
    if (declared?.type !== "TSInterfaceDeclaration" || !isOptions.test(declared.id.name)) return [];
    const own = declared.body.body.flatMap((member) => optionOf(member, source, comments));
    const bases = declared.extends.map(({ start, end }) => baseOf(source.slice(start, end)));
    return [{ name: declared.id.name, own, bases, nested: namesIn(own.map(({ type }) => type).join(" ")) }];
  });
}

/** `Omit<HttpOptions, "logger">`, `Pick<HttpOptions, "logger">`, or a name. @param {string} text @returns {Base} */
function baseOf(text) {
  const [, kind = "", name = text, rest = ""] = /^(Omit|Pick)<\s*(\w+)(?:<\w+>)?\s*,([\s\S]*)>$/.exec(text) ?? [];
  const keys = [...rest.matchAll(/"(\w+)"/g)].map(([, key = ""]) => key);
  return {
    name: name.replace(/^Partial<(\w+)>$/, "$1"),
    without: kind === "Pick" ? [] : keys,
    only: kind === "Pick" ? keys : undefined,
  };
}

/** @param {string} types @returns {readonly string[]} */
function namesIn(types) {
  return [...new Set(types.match(/\b[A-Z]\w+/g) ?? [])].filter((name) => isOptions.test(name));
}

/**
 * @param {import("oxc-parser").TSSignature} member
 * @param {string} source
 * @param {readonly import("oxc-parser").Comment[]} comments
 * @returns {readonly Option[]}
 */
function optionOf(member, source, comments) {
  if (member.type !== "TSPropertySignature" && member.type !== "TSMethodSignature") return [];
  if (member.key.type !== "Identifier") return [];
  const comment = comments.findLast(({ end }) => end <= member.start && source.slice(end, member.start).trim() === "");
  const written = source
    .slice(member.key.end, member.end)
    .replace(/^\?/, "")
    .replace(/^:\s*|;$/g, "");
  return [
    {
      name: member.key.name,
      type: written.replace(/\s+/g, " ").trim(),
      optional: member.optional,
      text: textOf(comment?.value ?? ""),
    },
  ];
}

/** The text of a comment: without its stars, each paragraph on one line. @param {string} comment */
function textOf(comment) {
  const lines = comment
    .replace(/^\*/, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd());
  const [text = ""] = lines.join("\n").split(/\n\s*@/);
  return text
    .trim()
    .replace(/\{@link\s+([^}|]+?)(?:\s*\|[^}]*)?\}/g, "`$1`")
    .replace(/\n{2,}/g, "\n\n")
    .replace(/([^\n])\n(?!\n)/g, "$1 ");
}

/** A sentence that says what holds without the option. Dots in code and in numbers do not end it. */
const defaultSentence = /(?<=^|\s)(?:Default|Absent)(?::| )(?:`[^`]*`|[^.`]|\.(?!\s|$))+\./;

/** Whether the comment of an option says what holds without it. @param {Option} option */
export function saysDefault({ optional, text }) {
  return !optional || /\bdefault|\bAbsent:/i.test(text);
}

/** @param {Option} option @returns {string} */
function lineOf({ name, type, optional, text }) {
  const paragraphs = text.replace(defaultSentence, "_$&_").replace(/\n\n/g, "\n\n  ");
  return `- **\`${name}\`**, \`${type}\`: ${paragraphs}${optional ? "" : " _Required._"}`;
}

/**
 * The options of a type that stand under its name: its own, and those of its bases that have no place of their own.
 * @param {Options} options @param {ReadonlyMap<string, Options>} all @param {readonly string[]} shown
 * @returns {{ own: readonly Option[], elsewhere: readonly Base[] }}
 */
function gathered(options, all, shown) {
  const own = [...options.own];
  /** @type {Base[]} */
  const elsewhere = [];
  for (const base of options.bases) {
    const known = all.get(base.name);
    if (known === undefined || shown.includes(base.name)) elsewhere.push(base);
    else {
      const inherited = gathered(known, all, shown);
      const has = [...base.without, ...own.map(({ name }) => name)];
      own.push(...inherited.own.filter(({ name }) => !has.includes(name) && base.only?.includes(name) !== false));
      elsewhere.push(...inherited.elsewhere);
    }
  }
  return { own, elsewhere };
}

/**
 * What stands on the page for a type.
 * @param {string} name @param {ReadonlyMap<string, Options>} all @param {readonly string[]} shown @returns {string}
 */
function render(name, all, shown) {
  const options = all.get(name);
  if (options === undefined) throw new Error(`docs/configuration.md shows ${name}, which no package exports`);
  const { own, elsewhere } = gathered(options, all, shown);
  const others = elsewhere.map(({ name: base, without }) => {
    const but = without.length === 0 ? "" : `, except ${without.map((key) => `\`${key}\``).join(", ")}`;
    return `Every option of \`${base}\` is one of these too${but}.`;
  });
  return [own.map(lineOf).join("\n"), ...others].filter((part) => part !== "").join("\n\n");
}

/**
 * Types that a page should show, for its first ones: their bases, and the types of their options.
 * @param {readonly string[]} first @returns {ReadonlySet<string>}
 */
export function reachable(first) {
  const all = allOptions();
  /** @type {Set<string>} */
  const found = new Set();
  /** @param {string} name */
  const visit = (name) => {
    const options = all.get(name);
    if (options === undefined || found.has(name)) return;
    found.add(name);
    for (const next of [...options.bases.map((base) => base.name), ...options.nested]) visit(next);
  };
  for (const name of first) visit(name);
  return found;
}

const marks = /<!-- options: (\w+) -->\n[\s\S]*?<!-- \/options -->/g;

/** The types that a page shows. @param {string} page @returns {readonly string[]} */
export function shownOn(page) {
  return [...page.matchAll(marks)].map(([, name = ""]) => name);
}

/** A page with the present options between its marks. @param {string} page @returns {string} */
export function withOptions(page) {
  const all = allOptions();
  const shown = shownOn(page);
  return page.replace(marks, (_, /** @type {string} */ name) => {
    return `<!-- options: ${name} -->\n\n${render(name, all, shown)}\n\n<!-- /options -->`;
  });
}

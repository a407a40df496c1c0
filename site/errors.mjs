// The codes of errors, read from packages/a2a/src/model/errors.ts: docs/errors.md shows them between marks, and
// `npm run docs -- --index` writes them there.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./places.mjs";

/** @typedef {{ readonly code: string, readonly text: string, readonly cure: string, readonly sent: readonly string[] }} Code */

/** A comment of a code: what happened, then the cure. @param {string} code @param {string} comment */
function textsOf(code, comment) {
  const line = comment.replace(/\s*\n\s*\* ?/g, " ").trim();
  const [text = "", cure = ""] = line.split(" Cure: ");
  if (text === "" || cure === "") throw new Error(`${code} needs a comment that says what happened, and “Cure: …”`);
  return { text, cure };
}

/** @returns {{ server: readonly Code[], client: readonly Code[] }} */
function codes() {
  const source = readFileSync(join(root, "packages/a2a/src/model/errors.ts"), "utf8");
  const [, table = ""] = /export const wireErrors\b[^{]*\{\n([\s\S]*?)^\};/m.exec(source) ?? [];
  const [, statuses = ""] = /export const wireStatuses\b[^{]*\{\n([\s\S]*?)^\};/m.exec(source) ?? [];
  const [, union = ""] = /export type ClientErrorCode =\n([\s\S]*?);\n/.exec(source) ?? [];
  const status = Object.fromEntries(
    [...statuses.matchAll(/(\w+): "(\w+)"/g)].map(([, code = "", name]) => [code, name]),
  );
  const rows = table.matchAll(/\/\*\*([\s\S]*?)\*\/[^/]*?(\w+): (?:row|outside)\((-\d+), (\d+), "(.*?)"\)/g);
  const server = [...rows].map(([, comment = "", code = "", jsonrpc = "", http = "", message = ""]) => ({
    code,
    ...textsOf(code, comment),
    sent: [jsonrpc, http, status[code] ?? "", message],
  }));
  const client = [...union.matchAll(/\/\*\*([\s\S]*?)\*\/\s*\| "(\w+)"/g)].map(([, comment = "", code = ""]) => ({
    code,
    ...textsOf(code, comment),
    sent: [],
  }));
  return { server, client };
}

/** @param {readonly Code[]} list */
const sections = (list) =>
  list.map(({ code, text, cure }) => `### \`${code}\`\n\n${text}\n\n**Cure:** ${cure}`).join("\n\n");

/** @param {readonly Code[]} list */
function table(list) {
  const rows = list.map(({ code, sent }) => `| ${[`[\`${code}\`](#${code.toLowerCase()})`, ...sent].join(" | ")} |`);
  return ["| code | JSON-RPC | HTTP | gRPC | default message |", "| --- | --- | --- | --- | --- |", ...rows].join("\n");
}

/** A page with the present codes between its marks. @param {string} page @returns {string} */
export function withErrors(page) {
  const { server, client } = codes();
  const texts = { table: table(server), server: sections(server), client: sections(client) };
  return Object.entries(texts).reduce(
    (before, [name, text]) =>
      before.replace(
        new RegExp(`(<!-- errors: ${name} -->\\n)[^]*?(<!-- /errors -->)`),
        (_, open, close) => `${open}\n${text}\n\n${close}`,
      ),
    page,
  );
}

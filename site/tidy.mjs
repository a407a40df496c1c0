// Makes the pages of the reference read well: declarations are formatted as the sources are, unions stand on one line.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { format } from "oxfmt";

const width = 88;

/** @param {string} code @returns {Promise<string | undefined>} `undefined` where it is not a program. */
async function formatted(code) {
  const { code: result, errors } = await format("code.ts", code, { printWidth: width });
  return errors.length === 0 ? result : undefined;
}

/** A declaration, or a member of one, formatted. @param {string} code @returns {Promise<string>} */
async function declaration(code) {
  if (!code.trim().includes("\n") && code.length <= width) return code;
  const whole = await formatted(code);
  if (whole !== undefined) return whole;
  const member = await formatted(`interface X {\n${code}}\n`);
  return member === undefined ? code : member.split("\n").slice(1, -2).join("\n").replace(/^ {2}/gm, "") + "\n";
}

/** @param {string} page @returns {Promise<string>} */
async function tidied(page) {
  let text = page.replace(/^ {2}\\\| .+(?:\n {2}\\\| .+)+$/gm, (union) =>
    union.replace(/^ {2}\\\| /, "").replace(/\n {2}(?=\\\|)/g, " "),
  );
  for (const [block, code = ""] of text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)) {
    const better = await declaration(code);
    if (better !== code) text = text.replace(block, () => "```ts\n" + better + "```");
  }
  return text;
}

/** Tidies every page below a folder. @param {string} folder */
export async function tidy(folder) {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md"));
  for (const file of files) {
    const path = join(folder, file);
    writeFileSync(path, await tidied(readFileSync(path, "utf8")));
  }
}

import { register } from "node:module";

/* The conformance suite imports fs.globSync(), which Node 20 lacks, for a command that the tests do not use. */

const fs = `export * from "node:fs"; export { default } from "node:fs"; export const globSync = undefined;`;
const hooks = `export async function resolve(specifier, context, next) {
  const url = ${JSON.stringify(`data:text/javascript,${encodeURIComponent(fs)}`)};
  return specifier === "fs" && context.parentURL?.includes("/conformance/") ? { url, shortCircuit: true } : next(specifier, context);
}`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

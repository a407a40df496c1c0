import { readFile } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { register as registerCommonJs } from "tsx/cjs/api";
import { register as registerModules } from "tsx/esm/api";
import { CommandError, UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";

const extensions = [".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs"];

/**
 * Loads a module of the user, JavaScript or TypeScript, and returns its default export. The TypeScript loader is registered
 * globally, so that the module and this process share one copy of every package.
 *
 * @param isWanted - Tells the wanted export: a CommonJS module that was compiled from an ES module has it one level deeper.
 */
export async function loadDefault(file: string, cwd: string, isWanted: (value: unknown) => boolean): Promise<unknown> {
  const path = resolve(cwd, file);
  if (!extensions.includes(extname(path))) {
    throw new UsageError(`${file} is not a module: its name ends in none of ${extensions.join(", ")}`);
  }
  try {
    await readFile(path);
  } catch (error) {
    throw new UsageError(`cannot read ${file}: ${fileReason(error)}`, { cause: error });
  }
  registerModules();
  registerCommonJs();
  let module: object;
  try {
    module = (await import(pathToFileURL(path).href)) as object;
  } catch (error) {
    throw new CommandError(`cannot load ${file}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  const value: unknown = "default" in module ? module.default : undefined;
  return typeof value === "object" && value !== null && !isWanted(value) && "default" in value ? value.default : value;
}

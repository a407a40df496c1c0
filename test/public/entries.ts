import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { entriesOf } from "../../scripts/entries.mjs";
import { parseSync, type Declaration, type Program } from "oxc-parser";

const packages = fileURLToPath(new URL("../../packages", import.meta.url));

/** An entry point of a package, such as `@parley/a2a`, with its built declarations. */
export interface Entry {
  readonly name: string;
  readonly file: string;
}

interface Manifest {
  readonly name: string;
  readonly exports?: Readonly<Record<string, unknown>>;
}

/** Returns every entry point with types, of every package. */
export function entries(): readonly Entry[] {
  return readdirSync(packages).flatMap((folder) => {
    const manifest = JSON.parse(readFileSync(join(packages, folder, "package.json"), "utf8")) as Manifest;
    return entriesOf(join(packages, folder), manifest.exports).map(([path, { types = "" }]) => ({
      name: manifest.name + path.slice(1),
      file: join(packages, folder, types),
    }));
  });
}

/** The declarations of an exported name: one, or several for an overloaded function. */
export interface Exported {
  readonly name: string;
  /** The file that contains the declarations. */
  readonly module: Module;
  /** The name of the declarations in that file. */
  readonly local: string;
  readonly declarations: readonly Declared[];
  /** Whether the name is exported only as a type. */
  readonly typeOnly?: boolean;
}

/** A declaration, with the statement that contains it. The comment precedes that statement. */
export interface Declared {
  readonly node: Declaration;
  readonly statement: { readonly start: number };
}

export interface Module {
  readonly file: string;
  readonly source: string;
  readonly program: Program;
  readonly comments: readonly { readonly start: number; readonly end: number; readonly value: string }[];
}

/** Reads built declarations. Parses each file only once. */
export class Declarations {
  readonly #modules = new Map<string, Module>();

  /** Returns the exports of a file by name. Follows `export *`. */
  exportsOf(file: string): ReadonlyMap<string, Exported> {
    const found = new Map<string, Exported>();
    const module = this.#module(file);
    for (const statement of module.program.body) {
      if (statement.type === "ExportAllDeclaration") {
        for (const [name, exported] of this.exportsOf(source(file, statement.source.value))) found.set(name, exported);
      } else if (statement.type === "ExportNamedDeclaration") {
        if (statement.declaration !== null) {
          for (const name of namesOf(statement.declaration)) found.set(name, this.#local(module, name, name));
        }
        for (const { local, exported, exportKind } of statement.specifiers) {
          const [from, to] = [nameOf(local), nameOf(exported)];
          const target =
            statement.source === null
              ? this.#local(module, from, to)
              : this.#named(source(file, statement.source.value), from);
          const typeOnly = statement.exportKind === "type" || exportKind === "type" || target.typeOnly === true;
          found.set(to, { ...target, name: to, typeOnly });
        }
      }
    }
    return found;
  }

  /** Finds the declarations of a name that a module uses: in the module, or in the file of the workspace from which the module imports the name. */
  resolve(module: Module, name: string): Exported | undefined {
    const found = this.#local(module, name, name);
    return found.declarations.length > 0 ? found : undefined;
  }

  #named(file: string, name: string): Exported {
    const exported = this.exportsOf(file).get(name);
    if (exported === undefined) throw new Error(`${file} does not export ${name}`);
    return exported;
  }

  /** Finds the declarations of a module's local name, which may be an import. */
  #local(module: Module, local: string, name: string): Exported {
    const declarations: Declared[] = [];
    for (const statement of module.program.body) {
      if (statement.type === "ImportDeclaration") {
        for (const specifier of statement.specifiers) {
          const ours = statement.source.value.startsWith(".") || internal.test(statement.source.value);
          if (ours && specifier.type === "ImportSpecifier" && specifier.local.name === local)
            return { ...this.#named(source(module.file, statement.source.value), nameOf(specifier.imported)), name };
        }
      }
      const node = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
      if (node !== null && isDeclaration(node) && namesOf(node).includes(local)) declarations.push({ node, statement });
    }
    return { name, module, local, declarations };
  }

  #module(file: string): Module {
    const known = this.#modules.get(file);
    if (known !== undefined) return known;
    const text = readFileSync(file, "utf8");
    const { program, comments, errors } = parseSync(file, text);
    if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
    const module = { file, source: text, program, comments };
    this.#modules.set(file, module);
    return module;
  }
}

/** Returns whether an exported name can be imported as a value. */
export function isValue({ declarations, typeOnly = false }: Exported): boolean {
  const types = ["TSInterfaceDeclaration", "TSTypeAliasDeclaration"];
  return !typeOnly && declarations.some(({ node }) => !types.includes(node.type));
}

/** Matches a file of another package of the workspace, such as `@parley/a2a/internal/model/index`. */
const internal = /^@parley\/(\w+)\/internal\/(.+)$/;

/** Returns the declaration file that an import refers to, in the same package or in another one. */
function source(from: string, specifier: string): string {
  const [, name, path] = internal.exec(specifier) ?? [];
  if (name !== undefined) return join(packages, name, "dist", `${path}.d.ts`);
  return resolve(dirname(from), specifier.replace(/\.[jt]s$/, ".d.ts"));
}

function nameOf(node: { readonly type: string; readonly name?: string; readonly value?: unknown }): string {
  return node.name ?? String(node.value);
}

function isDeclaration(node: { readonly type: string }): node is Declaration {
  return /^(VariableDeclaration|TSDeclareFunction|FunctionDeclaration|ClassDeclaration|TS\w+Declaration)$/.test(
    node.type,
  );
}

function namesOf(node: Declaration): readonly string[] {
  if (node.type === "VariableDeclaration") {
    return node.declarations.flatMap(({ id }) => (id.type === "Identifier" ? [id.name] : []));
  }
  const { id } = node as { readonly id?: { readonly name?: string } | null };
  return id?.name === undefined ? [] : [id.name];
}

// The API reference: TypeDoc reads the sources of every entry point of every package, and writes Markdown pages.
// Every warning is an error: a link to a name that is not there, a name in a signature that has no page of its own.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Application, Converter, LogLevel, ReflectionKind } from "typedoc";
import { entryPoints } from "./entries.mjs";
import { repository, root, site, staged } from "./places.mjs";
import { tidy } from "./tidy.mjs";

const folder = join(staged, "api");

/** Of the pages of names: `serve()`, without "Function". */
const titles = { project: "API", module: "{name}", member: (/** @type {{ name: string }} */ { name }) => name };

/** @returns {Promise<Application>} */
async function prepared() {
  return Application.bootstrapWithPlugins({
    plugin: [join(site, "node_modules", "typedoc-plugin-markdown", "dist", "index.js")],
    tsconfig: join(site, "tsconfig.json"),
    basePath: root,
    entryPoints: entryPoints().map(({ file }) => file),
    name: "API",
    readme: "none",
    logLevel: LogLevel.Warn,
    excludePrivate: true,
    excludeInternal: true,
    excludeExternals: true,
    disableGit: true,
    sourceLinkTemplate: `${repository}/blob/main/packages/{path}#L{line}`,
    gitRevision: "main",
    treatWarningsAsErrors: true,
    validation: { invalidLink: true, notExported: true, notDocumented: false, rewrittenLink: true },
    outputs: [{ name: "markdown", path: folder }],
    // Of the plugin for Markdown: a page for each name, in a folder for each entry point.
    router: "member",
    entryFileName: "index",
    excludeScopesInPaths: true,
    hideBreadcrumbs: true,
    hidePageHeader: true,
    hideGroupHeadings: false,
    useCodeBlocks: true,
    expandParameters: true,
    pageTitleTemplates: titles,
  });
}

/**
 * Omits details that only fill a page: the source of each member, and the type that it is inherited from.
 * @param {any} reflection
 */
function shorten(reflection) {
  const named = reflection.parent?.kindOf(ReflectionKind.SomeSignature | ReflectionKind.Function) ?? false;
  const owner = named ? reflection.parent.parent : reflection.parent;
  if (!owner?.kindOf(ReflectionKind.Module)) delete reflection.sources;
  delete reflection.inheritedFrom;
}

/**
 * Writes the reference.
 * @returns {Promise<boolean>} Whether there was no warning. Warnings are printed.
 */
export async function writeReference() {
  const app = await prepared();
  const entries = entryPoints();
  // An entry point is called as it is imported, not by its file.
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    if (!reflection.kindOf(ReflectionKind.Module)) return;
    const file = context.getSymbolFromReflection(reflection)?.declarations?.[0]?.getSourceFile().fileName;
    reflection.name = entries.find((entry) => entry.file === file)?.name ?? reflection.name;
  });
  app.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    for (const reflection of Object.values(project.reflections)) shorten(reflection);
  });
  const project = await app.convert();
  if (project === undefined) return false;
  app.validate(project);
  rmSync(folder, { recursive: true, force: true });
  await app.generateOutputs(project);
  await tidy(folder);
  writeFileSync(join(folder, "index.md"), overview(project));
  return !app.logger.hasErrors() && !app.logger.hasWarnings();
}

/**
 * The first page of the reference: every entry point, with what it is for.
 * @param {import("typedoc").ProjectReflection} project @returns {string}
 */
function overview({ children = [] }) {
  const rows = entryPoints().map(({ name, path, file }) => {
    const summary = children.find((module) => module.name === name)?.comment?.summary ?? [];
    const [about = ""] = summary
      .map(({ text }) => text)
      .join("")
      .replace(/\n(?!\n)/g, " ")
      .split("\n");
    if (about === "")
      throw new Error(`${file} says nothing about itself: begin it with a comment with @packageDocumentation`);
    return `| [\`${name}\`](/api/${path}/) | ${about} |`;
  });
  return [
    "# API of the packages\n",
    "Every name that a program can import, generated from the comments in the code. The same comments show in an editor.\n",
    "| import | what it has |",
    "| --- | --- |",
    ...rows,
    "",
  ].join("\n");
}

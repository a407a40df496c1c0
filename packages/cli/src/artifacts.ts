import { mkdir, open } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import type { Artifact, Part } from "@parley/a2a";
import { CommandError } from "./errors.ts";
import { extensionOf, fileReason } from "./files.ts";
import { line } from "@parley/a2a/display";
import { longest } from "./output/text.ts";

interface ArtifactFile {
  readonly name: string;
  readonly content: string | Uint8Array;
}

/** Names that Windows reserves for devices, with any extension. */
const reserved = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/**
 * A safe file name for a name that an agent chose: one path segment without special characters, and no name that an operating system
 * reserves. A file of that name is always inside its folder.
 */
export function safeName(name: string): string {
  const last = basename(name.normalize("NFC").replaceAll("\\", "/"));
  const cleaned = last
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029<>:"/\\|?*]/gu, "_")
    .replace(/^[.\s-]+/u, "")
    .replace(/(?<![.\s])[.\s]+$/u, "");
  const extension = extname(cleaned).slice(0, 20);
  const stem = cleaned.slice(0, cleaned.length - extname(cleaned).length).slice(0, 100);
  const short = `${stem}${extension}`.replace(/(?<![.\s])[.\s]+$/u, "");
  if (short === "") return "artifact";
  return reserved.test(short) ? `_${short}` : short;
}

function extensionFor(part: Part): string {
  if (part.mediaType !== undefined) {
    const known = extensionOf(part.mediaType);
    if (known !== undefined) return known;
  }
  if (part.text !== undefined) return "txt";
  return part.data !== undefined ? "json" : "bin";
}

function nameFor(artifact: Artifact, part: Part): string {
  if (part.filename !== undefined && part.filename !== "") return safeName(part.filename);
  const base = safeName(artifact.name ?? artifact.artifactId);
  return extname(base) === "" ? `${base}.${extensionFor(part)}` : base;
}

/** The files of an artifact. Consecutive text parts become one file; a part that is only a URL becomes none. */
export function artifactFiles(artifact: Artifact): readonly ArtifactFile[] {
  const files: { name: string; content: string | Uint8Array; text: boolean }[] = [];
  for (const part of artifact.parts) {
    const name = nameFor(artifact, part);
    const last = files.at(-1);
    if (part.text !== undefined) {
      if (last?.text === true && last.name === name) last.content = `${String(last.content)}${part.text}`;
      else files.push({ name, content: part.text, text: true });
    } else if (part.raw !== undefined) {
      files.push({ name, content: Buffer.from(part.raw, "base64"), text: false });
    } else if (part.data !== undefined) {
      files.push({ name, content: `${JSON.stringify(part.data, null, 2)}\n`, text: false });
    }
  }
  return files;
}

/** Creates a new file. Never overwrites a file or follows a link: a number is added to a name that is taken. */
async function writeNew(folder: string, name: string, content: string | Uint8Array): Promise<string> {
  const extension = extname(name);
  const stem = name.slice(0, name.length - extension.length);
  for (let count = 1; ; count++) {
    const path = join(folder, count === 1 ? name : `${stem}-${count}${extension}`);
    try {
      const file = await open(path, "wx");
      try {
        await file.writeFile(content);
      } finally {
        await file.close();
      }
      return path;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
  }
}

/** Writes the files of an artifact into a folder, creating it if needed. Returns their paths. */
export async function saveArtifact(folder: string, artifact: Artifact): Promise<readonly string[]> {
  const paths: string[] = [];
  try {
    await mkdir(folder, { recursive: true });
    for (const file of artifactFiles(artifact)) paths.push(await writeNew(folder, file.name, file.content));
  } catch (error) {
    const what = artifact.name ?? artifact.artifactId;
    throw new CommandError(`cannot save ${line(what, longest.name)} in ${folder}: ${fileReason(error)}`, {
      cause: error,
    });
  }
  return paths;
}

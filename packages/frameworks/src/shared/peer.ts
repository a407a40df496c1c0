/* The installed version of a framework. */

/** The framework versions that an adapter supports: `min` and above, and lower than `below`. */
export interface PeerRange {
  /** The subpath of the adapter, such as `ai-sdk`. */
  readonly adapter: string;
  /** Name of the package. */
  readonly name: string;
  /** A major version, such as `6`. Below 1.0, a minor version, such as `"0.17"`, optionally with the patch. */
  readonly min: number | string;
  readonly below: number | string;
}

/**
 * The version of an installed package. `undefined` if this runtime cannot determine it.
 *
 * @param from - The URL of the module that imports the package, for module resolution.
 */
export function installedVersion(name: string, from: string): string | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(id: string): ModuleModule | undefined } };
  try {
    const read = process?.getBuiltinModule?.("node:module")?.createRequire(from);
    return read === undefined ? undefined : versionOf(name, read);
  } catch {
    return undefined;
  }
}

interface Require {
  (id: string): unknown;
  resolve(id: string): string;
}

interface ModuleModule {
  createRequire(from: string): Require;
}

/** Reads the file by path, because some packages do not export their package.json. */
function versionOf(name: string, read: Require): string | undefined {
  const folders = read.resolve(name).split(/[\\/]/);
  for (let depth = folders.length - 1; depth > 0; depth -= 1) {
    try {
      const path = [...folders.slice(0, depth), "package.json"].join("/");
      const found = read(path) as { readonly name?: string; readonly version?: string };
      if (found.name === name) return found.version;
    } catch {
      // The path is a folder of the package.
    }
  }
  return undefined;
}

/** @throws Error for a version outside the range, but not for `undefined`. */
export function checkPeer({ adapter, name, min, below }: PeerRange, version: string | undefined): void {
  if (version === undefined) return;
  const found = rankOf(version);
  if (found >= rankOf(min) && found < rankOf(below)) return;
  throw new Error(`@parley/frameworks/${adapter} needs ${name} >=${min} <${below}, found ${version}`);
}

function rankOf(version: number | string): number {
  const [major = 0, minor = 0, patch = 0] = String(version)
    .split(".")
    .map((part) => Number.parseInt(part, 10));
  return (major * 10_000 + minor) * 10_000 + patch;
}

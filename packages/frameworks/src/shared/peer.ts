/* The installed version of a framework. */

/** Major versions of a framework that an adapter supports: `min` and above, less than `below`. */
export interface PeerRange {
  /** The subpath of the adapter, such as `ai-sdk`. */
  readonly adapter: string;
  /** Name of the package. */
  readonly name: string;
  readonly min: number;
  readonly below: number;
}

/**
 * The version of an installed package. `undefined`: this runtime cannot tell.
 *
 * @param from - Where the package is looked up: the URL of the module that imports it.
 */
export function installedVersion(name: string, from: string): string | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(id: string): ModuleModule | undefined } };
  try {
    const read = process?.getBuiltinModule?.("node:module")?.createRequire(from);
    const { version } = (read?.(`${name}/package.json`) ?? {}) as { readonly version?: string };
    return version;
  } catch {
    return undefined;
  }
}

interface ModuleModule {
  createRequire(from: string): (id: string) => unknown;
}

/** @throws Error for a version out of the range. `version`: `undefined` is accepted. */
export function checkPeer({ adapter, name, min, below }: PeerRange, version: string | undefined): void {
  const major = Number(version?.split(".", 1)[0] ?? min);
  if (major >= min && major < below) return;
  throw new Error(`@parley/frameworks/${adapter} needs ${name} >=${min} <${below}, found ${version}`);
}

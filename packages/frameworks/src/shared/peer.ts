/* The installed version of a framework. */

/** Versions of a framework that an adapter supports: `min` and above, less than `below`. A number is a major version. */
export interface PeerRange {
  /** The subpath of the adapter, such as `ai-sdk`. */
  readonly adapter: string;
  /** Name of the package. */
  readonly name: string;
  readonly min: number | string;
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
  if (version === undefined) return;
  const [found, least] = [numbersOf(version), numbersOf(String(min))];
  const at = [0, 1, 2].find((place) => found[place] !== least[place]);
  const isNewEnough = at === undefined || (found[at] ?? NaN) > (least[at] ?? NaN);
  if (isNewEnough && (found[0] ?? NaN) < below) return;
  throw new Error(`@parley/frameworks/${adapter} needs ${name} >=${min} <${below}, found ${version}`);
}

function numbersOf(version: string): readonly number[] {
  const [major, minor = 0, patch = 0] = version.split(/[.+-]/).map(Number);
  return [major ?? NaN, minor, patch];
}

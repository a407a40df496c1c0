import { loadDriver, MissingDriver, type DriverName, type OpenDriver } from "../../src/sqlite/libraries.ts";

/** The available drivers. `libsql` is a dependency of the workspace, the others belong to the runtime. */
export const drivers: readonly DriverName[] = await presentOf(["node:sqlite", "bun:sqlite", "libsql"]);

/** A store's default driver in this runtime. */
export const openDriver: OpenDriver = await loadDriver();

async function presentOf(names: readonly DriverName[]): Promise<readonly DriverName[]> {
  const present: DriverName[] = [];
  for (const name of names) {
    try {
      await loadDriver(name);
      present.push(name);
    } catch (thrown) {
      if (!(thrown instanceof MissingDriver)) throw thrown;
    }
  }
  // Bun also has `node:sqlite` and can run `libsql`, but there is no reason to use them on Bun.
  return "bun" in process.versions ? present.filter((name) => name === "bun:sqlite") : present;
}

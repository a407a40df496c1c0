import { loadDriver, MissingDriver, type DriverName, type OpenDriver } from "../../src/sqlite/drivers/load.ts";

/** The drivers that this runtime has. `libsql` comes with the workspace, the others with the runtime. */
export const drivers: readonly DriverName[] = await presentOf(["node:sqlite", "bun:sqlite", "libsql"]);

/** The one that a store takes by default here. */
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
  // Bun has `node:sqlite` as well, and runs `libsql` as Node does; a store on Bun has no reason to take them.
  return "bun" in process.versions ? present.filter((name) => name === "bun:sqlite") : present;
}

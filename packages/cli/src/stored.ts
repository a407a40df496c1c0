import type { Store } from "@parley/server/internal/store/index";
import type * as sqlite from "@parley/sql/sqlite";
import { CommandError } from "./errors.ts";
import { fileReason } from "./files.ts";

/** Where `parley serve` keeps tasks, below the working directory. */
export const defaultFile = ".parley/parley.db";

/** Opens a store on a file. `where`: the file as the user named it, for the error. */
export async function openFile(where: string, open: (module: typeof sqlite) => Promise<Store>): Promise<Store> {
  try {
    return await open(await import("@parley/sql/sqlite"));
  } catch (error) {
    throw new CommandError(`cannot open the store ${where}: ${fileReason(error)}`, { cause: error });
  }
}

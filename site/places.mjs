// Where things are: in this clone, and on the code host.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the generator. */
export const site = dirname(fileURLToPath(import.meta.url));

/** The clone. */
export const root = dirname(site);

/** The pages as the generator reads them: those of docs/, the reference, and the home page. */
export const staged = join(site, ".pages");

/** What is built. */
export const output = join(site, "dist");

/** The repository on its code host. */
export const repository = "https://github.com/parley-a2a/parley";

// npm run release: publishes the packages. npm run release -- --dry-run: does everything but that. CONTRIBUTING.md says when.

import { parseArgs } from "node:util";
import { release } from "./releases.mjs";

const usage = `npm run release -- [--dry-run] [--out FOLDER] [--no-provenance]

Checks the state of the repository, builds and packs the packages, checks the tarballs, and publishes them in
the order of their dependencies. A package whose version is published already is left out, so that a release
which failed in between can be run again. At the end the commit is tagged.

  --dry-run         publish and tag nothing, and go on where the state of the repository is not that of a release
  --out FOLDER      where the tarballs go; without it a new temporary folder
  --no-provenance   for a registry of your own, which cannot check where a package was built
  -h, --help        show this help

The registry, and who you are there, are those of npm: --registry in .npmrc or npm_config_registry.
Exit codes: 0 done, 1 not done, 2 bad usage.`;

/** @returns {Promise<number>} The exit code. */
async function main() {
  /** @type {{ "dry-run"?: boolean, out?: string, provenance?: boolean, help?: boolean }} */
  let options;
  try {
    ({ values: options } = parseArgs({
      options: {
        "dry-run": { type: "boolean" },
        out: { type: "string" },
        provenance: { type: "boolean", default: true },
        help: { type: "boolean", short: "h" },
      },
      allowNegative: true,
    }));
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
    return 2;
  }
  if (options.help === true) {
    console.log(usage);
    return 0;
  }
  try {
    await release({
      dryRun: options["dry-run"] === true,
      provenance: options.provenance !== false,
      ...(options.out === undefined ? {} : { out: options.out }),
      say: (line) => console.log(line),
    });
    return 0;
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

process.exitCode = await main();

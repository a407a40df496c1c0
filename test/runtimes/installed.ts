import { install } from "../../scripts/ready.mjs";

/**
 * Installs the runtimes once, before any test file begins. They are not part of the workspace: they are large, and only this suite needs them.
 * Their install scripts would fetch or link the program for this machine; it is in a package of its own, so they do not run.
 */
export const setup = (): Promise<void> => install(import.meta.dirname, ["--ignore-scripts"]);

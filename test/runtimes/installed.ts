import { install } from "../../scripts/ready.mjs";

/**
 * Installs the runtimes once, before any test file begins. They are not in the workspace because they are large, and only this suite needs them.
 * Install scripts would fetch or link the program for this machine. They do not run, because npm installs that program as its own package.
 */
export const setup = (): Promise<void> => install(import.meta.dirname, ["--ignore-scripts"]);

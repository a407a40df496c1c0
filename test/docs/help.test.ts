import { describe } from "vitest";
import { helpExamples } from "../../packages/cli/test/support/help.ts";

/** The others are run by packages/cli/test/help.test.ts. */
describe("every example of the help that needs a shell, or serves, runs", () => {
  helpExamples(true);
});

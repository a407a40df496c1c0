import { describe } from "vitest";
import { helpExamples } from "../../packages/cli/test/support/help.ts";

/** packages/cli/test/help.test.ts runs the examples that are not tested here. */
describe("every example of the help that needs a shell, or serves, runs", () => {
  helpExamples(true);
});

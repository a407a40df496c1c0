import { describe } from "vitest";
import { helpExamples } from "../../packages/cli/test/support/help.ts";

/** packages/cli/test/help.test.ts runs the other examples. */
describe("every example of the help that needs a shell, or serves, runs", () => {
  helpExamples(true);
});

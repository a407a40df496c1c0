import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Runs the slowest files first, so no worker is left with one of them at the end. Files that share processes come
 * last and together: vitest ends a shared process when the next file in the queue is not of its project.
 */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ project, moduleId }: TestSpecification): number =>
      (project.config.isolate ? 0 : 2) +
      (project.name === "long" || known.some((path) => moduleId.endsWith(path)) ? 0 : 1);
    return sorted.sort((one, other) => rank(one) - rank(other));
  }
}

/** The slowest files of the other projects. A file that is missing here costs a few seconds at most. */
const known = [
  "packages/cli/test/cli.test.ts",
  "test/behaviour/behaviour.test.ts",
  "examples/data-analyst/test/agent.test.ts",
  "packages/cli/test/dev.test.ts",
  "packages/node/test/hostile-client.test.ts",
  "packages/cli/test/official.test.ts",
  "test/types/declarations.test.ts",
  "packages/conform/test/own.test.ts",
  "packages/conform/test/special.test.ts",
  "packages/conform/test/hostile.test.ts",
];

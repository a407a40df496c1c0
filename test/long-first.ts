import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Begins with the files that take longest, so that no worker is left alone with one of them at the end. */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ project, moduleId }: TestSpecification): boolean =>
      project.name === "long" || known.some((path) => moduleId.endsWith(path));
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** The files of the rest that take longest. A file that is missing here costs a few seconds at most. */
const known = [
  "packages/cli/test/cli.test.ts",
  "test/behaviour/behaviour.test.ts",
  "test/docs/snippets.test.ts",
  "examples/data-analyst/test/agent.test.ts",
  "packages/cli/test/init.test.ts",
  "packages/conform/test/own.test.ts",
  "packages/conform/test/special.test.ts",
  "packages/conform/test/hostile.test.ts",
];

import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Runs files in the order of `slowest`, so no worker is left with one of them at the end. Files that share processes come
 * last and together: vitest ends a shared process when the next file in the queue is not of its project.
 */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ project, moduleId }: TestSpecification): number => {
      const at = slowest.findIndex((path) => moduleId.endsWith(path));
      return (project.config.isolate ? 0 : 1_000) + (at === -1 ? slowest.length : at);
    };
    return sorted.sort((one, other) => rank(one) - rank(other));
  }
}

/** The slowest files of each project, slowest first. A file that is missing here costs a few seconds at most. */
const slowest = [
  // long
  "test/crash/kill.test.ts",
  "test/fuzz/fuzz.test.ts",
  "packages/a2a/test/cards/changes.test.ts",
  "packages/sql/test/sqlite/contract.test.ts",
  "test/crash/steps.test.ts",
  "test/crash/delegated.test.ts",
  "packages/conform/test/mutants.test.ts",
  "test/crash/delegation.test.ts",
  "test/crash/webhooks.test.ts",
  "test/isolation/isolation.test.ts",
  // unit and alone
  "test/behaviour/behaviour.test.ts",
  "packages/node/test/host-contract.test.ts",
  "packages/cli/test/serve.test.ts",
  "packages/cli/test/cli.test.ts",
  "packages/cli/test/dev.test.ts",
  "examples/data-analyst/test/agent.test.ts",
  "packages/conform/test/healthy.test.ts",
  "packages/conform/test/own.test.ts",
  "packages/node/test/contract.test.ts",
  "packages/node/test/hostile-client.test.ts",
  "packages/conform/test/special.test.ts",
  "packages/conform/test/hostile.test.ts",
  "packages/cli/test/official.test.ts",
  // postgres
  "test/cluster/rolling.test.ts",
  "packages/sql/test/postgres/contract.test.ts",
  "examples/dbos/test/orders.test.ts",
  // attack
  "test/attack/tasks.test.ts",
  "test/attack/readers.test.ts",
  "test/attack/large-files.test.ts",
  "test/attack/bodies.test.ts",
  "test/attack/replies.test.ts",
  "test/attack/blobs.test.ts",
  // release, docs, examples, interop
  "test/release/tarballs.test.ts",
  "test/types/declarations.test.ts",
  "test/docs/snippets.test.ts",
  "test/examples/kill.test.ts",
  "test/interop/quiet.test.ts",
];

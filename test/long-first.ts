import { BaseSequencer, type TestSpecification } from "vitest/node";
import { slowest } from "./projects.ts";

/**
 * Runs files in the order of `slowest`, so that no worker starts one of them last. Files that share processes come last and
 * together, because vitest ends a shared process if the next file in the queue belongs to another project.
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

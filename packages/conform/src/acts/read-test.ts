import { levels, transports, type Suite, type Test } from "./format.ts";
import { readNamed } from "./read-expect.ts";
import { readStep } from "./read-step.ts";
import type { StrictMap } from "./strict-map.ts";

/** Reads a suite of a file; `version` and `variables` are those of the file. */
export function readSuite(map: StrictMap, version: string, variables: Test["variables"]): Suite {
  const tags = map.texts("tags");
  map.any("description");
  const suite = {
    id: map.required("id"),
    name: map.required("name"),
    tests: map.submaps("tests").map((test) => readTest(test, tags, version, variables)),
  };
  map.done();
  return suite;
}

function readTest(map: StrictMap, tags: readonly string[], version: string, variables: Test["variables"]): Test {
  const description = map.text("description");
  const specRef = map.text("spec_ref");
  const conditions = map.submap("preconditions");
  map.any("origin");
  const refusesInput = conditions?.text("refuses_input");
  const test: Test = {
    id: map.required("id"),
    name: map.required("name"),
    ...(description === undefined ? {} : { description: description.trim() }),
    ...(specRef === undefined ? {} : { specRef }),
    level: map.choice("level", levels) ?? map.fail("level", "is missing"),
    tags: [...new Set([...tags, ...map.texts("tags")])],
    transports: map.choices("transport", transports),
    preconditions: {
      capabilities: conditions?.map("capabilities") ?? {},
      skills: conditions?.submaps("skills").map((skill) => skill.required("id")) ?? [],
      transports: conditions?.choices("transport", transports) ?? [],
      extensions: conditions?.texts("extensions") ?? [],
      requiredExtension: conditions?.flag("required_extension") ?? false,
      ...(refusesInput === undefined ? {} : { refusesInput }),
    },
    behaviors: map.texts("requires_behaviors"),
    needs: map.texts("runner_requirements"),
    requirements: map.texts("requirements"),
    steps: map.submaps("steps").map(readStep),
    assertions: map.submaps("assertions").map(readNamed),
    version,
    variables,
  };
  conditions?.any("description");
  conditions?.done();
  map.done();
  if (test.steps.length === 0) map.fail("steps", "is missing");
  const ids = test.steps.map(({ id }) => id);
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) map.fail("steps", `has two steps of the id ${twice}`);
  if (test.transports.length !== 1 && test.steps.some(({ kind }) => kind === "raw")) {
    map.fail("transport", "must name the binding of a raw step");
  }
  return test;
}

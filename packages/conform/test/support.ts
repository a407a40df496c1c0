import { memoryStore, serve, type Agent, type Server } from "@parley/node";
import { anyone, anyOf, bearer } from "@parley/a2a/auth";
import { actsAgent } from "../../../kits/agents/acts.ts";
import { conform as run, type ConformOptions, type Report, type TestReport } from "../src/index.ts";
import { work as wait } from "./work.ts";

export interface Outcome {
  readonly report: Report;
  /** The tests by binding, followed by the version if it is not 1.0, such as `jsonrpc 0.3`. */
  readonly bindings: Readonly<Record<string, readonly TestReport[]>>;
}

/** How long the agent works, in milliseconds. Long enough for a test to observe it. */
const defaultWork = 6_000;

/** Runs tests, many at a time, and sorts the results by binding. */
export async function conform(url: string, options: ConformOptions = {}): Promise<Outcome> {
  const report = await run(url, { concurrency: 16, ...options });
  const bindings = report.bindings.map(
    ({ transport, version, suites }) =>
      [version === "1.0" ? transport : `${transport} ${version}`, suites.flatMap(({ tests }) => tests)] as const,
  );
  return { report, bindings: Object.fromEntries(bindings) };
}

/** The tests that did not pass, one line each. */
export function wrong(tests: readonly TestReport[] | undefined): readonly string[] {
  return (tests ?? [])
    .filter(({ result }) => result === "fail" || result === "error")
    .map(
      ({ id, result, failure }) => `${result} ${id}: ${failure?.message} (${failure?.expected}; ${failure?.actual})`,
    );
}

export function idsOf(tests: readonly TestReport[] | undefined, result: TestReport["result"]): readonly string[] {
  return (tests ?? []).filter((test) => test.result === result).map(({ id }) => id);
}

export type Configuration = "plain" | "silent" | "guarded" | "open" | "required";

const requiredExtension = "https://example.com/required/v1";

/** Starts one of our servers. For each capability, one configuration has it and another lacks it. */
export async function startParley(configuration: Configuration, work: number = defaultWork): Promise<Server> {
  const agents: Readonly<Record<Configuration, Agent>> = {
    plain: actsAgent({ work, wait }),
    silent: actsAgent({ work, wait, streaming: false }),
    guarded: actsAgent({ work, wait }),
    open: actsAgent({ work, wait }),
    required: actsAgent({ work, wait, requiredExtension }),
  };
  const agent = agents[configuration];
  const options = { port: 0, grpc: true, store: memoryStore(), signals: false, logger: false } as const;
  if (configuration !== "guarded" && configuration !== "open") return serve(agent, options);
  const known = bearer({ mine: { subject: "me" }, theirs: { subject: "them" } });
  const authenticator = configuration === "open" ? anyOf(known, anyone()) : known;
  return serve([{ agent, extendedCard: (card) => ({ ...card, description: "More for those we know." }) }], {
    ...options,
    authenticator,
  });
}

/** How the runner calls `guarded` and `open`. */
export const credentials: ConformOptions = {
  headers: { authorization: "Bearer mine" },
  otherHeaders: { authorization: "Bearer theirs" },
};

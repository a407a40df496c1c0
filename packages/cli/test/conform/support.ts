import { bearer, memoryStore, type Agent } from "@parley/a2a";
import { serve, type Server } from "@parley/node";
import { actsAgent } from "../../../../conformance/agents/acts.ts";
import { run } from "../../src/run.ts";
import { recordedIo } from "../support/io.ts";

export interface TestEntry {
  readonly id: string;
  readonly level: "must" | "should" | "may";
  readonly result: "pass" | "fail" | "skip" | "error";
  readonly skip_reason?: string;
  readonly failure?: { readonly message: string; readonly expected?: string; readonly actual?: string };
}

export interface Outcome {
  readonly code: number;
  readonly err: string;
  /** The tests by binding; those of another version than 1.0 by both: `jsonrpc 0.3`. */
  readonly bindings: Readonly<Record<string, readonly TestEntry[]>>;
}

/** Long enough for a test to find the agent at work, on a busy machine too. */
const work = 6_000;

/** Runs `parley conform` and reads its report. */
export async function conform(url: string, ...args: readonly string[]): Promise<Outcome> {
  const { io, out, err } = recordedIo();
  const code = await run(["conform", url, "--json", "--concurrency", "16", ...args], io);
  if (out() === "") return { code, err: err(), bindings: {} };
  const report = JSON.parse(out()) as {
    reports: { transport: string; spec_version: string; suites: { tests: TestEntry[] }[] }[];
  };
  const bindings = Object.fromEntries(
    report.reports.map(({ transport, spec_version, suites }) => [
      spec_version === "1.0" ? transport : `${transport} ${spec_version}`,
      suites.flatMap(({ tests }) => tests),
    ]),
  );
  return { code, err: err(), bindings };
}

/** What did not pass, as one line a test; empty where everything did. */
export function wrong(entries: readonly TestEntry[] | undefined): readonly string[] {
  return (entries ?? [])
    .filter(({ result }) => result === "fail" || result === "error")
    .map(
      ({ id, result, failure }) => `${result} ${id}: ${failure?.message} (${failure?.expected}; ${failure?.actual})`,
    );
}

export function idsOf(entries: readonly TestEntry[] | undefined, result: TestEntry["result"]): readonly string[] {
  return (entries ?? []).filter((entry) => entry.result === result).map(({ id }) => id);
}

export type Configuration = "plain" | "silent" | "guarded" | "required";

const requiredExtension = "https://example.com/required/v1";

/** Servers of ours that between them have every capability, and lack every one. */
export async function startParley(configuration: Configuration): Promise<Server> {
  const agents: Readonly<Record<Configuration, Agent>> = {
    plain: actsAgent({ work }),
    silent: actsAgent({ work, streaming: false }),
    guarded: actsAgent({ work }),
    required: actsAgent({ work, requiredExtension }),
  };
  const agent = agents[configuration];
  const options = { port: 0, store: memoryStore(), signals: false, logger: false } as const;
  if (configuration !== "guarded") return serve(agent, options);
  const authenticator = bearer({ mine: { subject: "me" }, theirs: { subject: "them" } });
  return serve([{ agent, extendedCard: (card) => ({ ...card, description: "More for those we know." }) }], {
    ...options,
    authenticator,
  });
}

/** What a caller of `guarded` says. */
export const credentials: readonly string[] = ["--token", "mine", "--other-token", "theirs"];

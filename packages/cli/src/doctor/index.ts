import type { CallOptions } from "../connection.ts";
import type { Io } from "../io.ts";
import { showFinding, type Finding } from "../output/show.ts";
import { quote } from "../invocation.ts";
import { counted, print } from "../output/text.ts";
import { checkAddresses, checkClients, checkVersions } from "./addresses.ts";
import { checkCard, checkClock, checkTls } from "./server.ts";
import { checkStreams } from "./streams.ts";

interface DoctorOptions extends CallOptions {
  readonly message?: string;
}

/** `parley doctor`. Prints each finding at once. Returns the exit code. */
export async function doctor(io: Io, at: string, options: DoctorOptions): Promise<number> {
  let broken = 0;
  let warnings = 0;
  for await (const finding of examine(io, at, options)) {
    if (finding.verdict === "broken") broken += 1;
    if (finding.verdict === "warning") warnings += 1;
    print(io, options, finding, (style) => showFinding(finding, style));
  }
  if (options.json !== true) io.stdout.write(`\n${summary(broken, warnings)}\n`);
  return broken === 0 ? 0 : 1;
}

function summary(broken: number, warnings: number): string {
  if (broken > 0) return `${counted(broken, "problem")}, ${counted(warnings, "warning")}.`;
  return warnings > 0 ? `The agent can be called. ${counted(warnings, "warning")}.` : "The agent can be called.";
}

async function* examine(io: Io, at: string, options: DoctorOptions): AsyncGenerator<Finding> {
  yield* checkTls(new URL(at));
  const found = await checkCard(io, at, options);
  yield* found.findings;
  if (found.date !== undefined) yield checkClock(found.date);
  if (found.card === undefined) return;
  const { card } = found;
  yield checkVersions(card);
  yield* checkClients(new URL(at), card);
  let wantsCredentials = false;
  for await (const { finding, refused } of checkAddresses(io, at, card, options)) {
    yield finding;
    wantsCredentials ||= refused;
  }
  if (wantsCredentials) {
    const seen = "not checked: the agent requires credentials";
    const cure = `parley login ${quote(at)}, or pass --token TOKEN, or for an API key --header 'NAME: KEY'`;
    yield { subject: "streams", verdict: "unknown", seen, cure };
  } else {
    yield* checkStreams(io, at, card, options);
  }
}

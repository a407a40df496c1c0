import { jsonLine } from "@parley/a2a/internal/base/display";
import type { CallOptions } from "../connection.ts";
import type { Io } from "../io.ts";
import { showFinding, type Finding } from "../output/show.ts";
import { quote, styleFor } from "../output/text.ts";
import { checkAddresses, checkClients, checkVersions } from "./addresses.ts";
import { checkCard, checkClock, checkTls } from "./server.ts";
import { checkStreams } from "./streams.ts";

/** Options of `parley doctor`. */
interface DoctorOptions extends CallOptions {
  readonly message?: string;
}

/** `parley doctor`. Prints each finding as soon as it is made. Returns the exit code. */
export async function doctor(io: Io, at: string, options: DoctorOptions): Promise<number> {
  const style = styleFor(io.stdout, io.env);
  let broken = 0;
  let warnings = 0;
  for await (const finding of examine(io, at, options)) {
    if (finding.verdict === "broken") broken += 1;
    if (finding.verdict === "warning") warnings += 1;
    io.stdout.write(options.json === true ? `${jsonLine(finding)}\n` : showFinding(finding, style));
  }
  if (options.json !== true) io.stdout.write(`\n${summary(broken, warnings)}\n`);
  return broken === 0 ? 0 : 1;
}

function summary(broken: number, warnings: number): string {
  const count = (many: number, one: string): string => `${many} ${one}${many === 1 ? "" : "s"}`;
  if (broken > 0) return `${count(broken, "problem")}, ${count(warnings, "warning")}.`;
  return warnings > 0 ? `It can be called. ${count(warnings, "warning")}.` : "It can be called.";
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
    const seen = "not checked, since the agent wants credentials";
    const cure = `parley login ${quote(at)}, or pass --token TOKEN, or for an API key --header 'NAME: KEY'`;
    yield { subject: "streams", verdict: "unknown", seen, cure };
  } else {
    yield* checkStreams(io, at, card, options);
  }
}

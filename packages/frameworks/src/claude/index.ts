/**
 * Claude Agent SDK agents as durable A2A agents.
 * @packageDocumentation
 */
import { deferred } from "@parley/a2a/internal/base/async";
import { defineAgent, type Agent, type AgentEvent, type Turn } from "@parley/server";
import { resume, suspend } from "../shared/approvals.ts";
import { adapterDefaults, checkDefinition } from "../shared/defaults.ts";
import { checkPeer, installedVersion } from "../shared/peer.ts";
import { decisionsAsText, Permissions, type CanUseTool } from "./permissions.ts";
import type { ClaudeContent, ClaudeDefinition, ClaudeQuery, ClaudeStream } from "./port.ts";
import { spawnKept } from "./process.ts";
import { contentOf, promptOf } from "./prompt.ts";
import { answersIn, askQuestions, askTool } from "./questions.ts";
import { outcome, Reader, resultsIn } from "./run.ts";
import { Session, type Store } from "./session.ts";

export type {
  ClaudeContent,
  ClaudeDefinition,
  ClaudeImage,
  ClaudeOptions,
  ClaudePrompt,
  ClaudeQuery,
  ClaudeSDK,
  ClaudeStream,
} from "./port.ts";

type Hooks = Readonly<Record<string, readonly object[] | undefined>>;

/** The user's options that the adapter reads. */
interface Read {
  readonly canUseTool?: CanUseTool;
  readonly hooks?: Hooks;
  readonly sessionStore?: Store;
  readonly stderr?: (text: string) => void;
}

/**
 * Turns a Claude Agent SDK agent into a Parley agent. A conversation is a session, whose transcript is stored with the task after each tool call, so
 * any node can resume the turn after a crash. Tools that need permission, and questions from the model, ask the user.
 *
 * @param query - `query()` of `@anthropic-ai/claude-agent-sdk`.
 * @param definition - Description and behaviour, as for `defineAgent()`, and `options` of `query()`.
 * @returns An agent for `serve()`.
 * @throws Error for a version of the SDK below 0.3.248, or 0.4 and above.
 *
 * @example
 * ```ts
 * import { query } from "@anthropic-ai/claude-agent-sdk";
 * import { serve } from "@parley/node";
 *
 * const options = { model: "claude-sonnet-4-5", systemPrompt: "You plan trips." };
 * await serve(fromClaude(query, { name: "Travel", description: "Plans trips.", version: "1.0.0", skills: [], options }));
 * ```
 */
export function fromClaude<Query extends ClaudeQuery>(query: Query, definition: ClaudeDefinition<Query>): Agent {
  const name = "@anthropic-ai/claude-agent-sdk";
  // Older versions expand `@path` in a caller's text to the content of the file.
  checkPeer({ adapter: "claude", name, min: "0.3.248", below: "0.4" }, installedVersion(name, import.meta.url));
  if (typeof query !== "function") throw new TypeError(`fromClaude() needs query() of ${name}`);
  checkDefinition<ClaudeDefinition>("fromClaude()", definition, { options: 1, reasoning: 1 });
  const { options = {}, reasoning = false, ...rest } = definition;
  return defineAgent({
    ...adapterDefaults,
    ...rest,
    async *onMessage(turn: Turn) {
      const answered = resume(turn, "claude");
      const answers = answersIn(turn);
      if (answered !== undefined && "ask" in answered) {
        yield answered.ask;
        return;
      }
      if (typeof answers === "object") {
        yield answers.ask;
        return;
      }
      const said = answered === undefined ? answers : decisionsAsText(answered);
      const made = isMaker(options) ? options(turn) : options;
      const { canUseTool, ...read }: Read = made;
      const permissions = new Permissions(turn, canUseTool, answered);
      yield* run(turn, query, { options: made, read, permissions, reasoning }, said);
    },
  });
}

function isMaker(options: object): options is (turn: Turn) => object {
  return typeof options === "function";
}

interface Run {
  readonly options: object;
  readonly read: Omit<Read, "canUseTool">;
  readonly permissions: Permissions;
  readonly reasoning: boolean;
}

/** The prompt after a lost run, which left a part of the answer in the transcript. */
const continued = "Continue from where you left off.";

async function* run(
  turn: Turn,
  query: ClaudeQuery,
  { options, read, permissions, reasoning }: Run,
  said: string | undefined,
): AsyncGenerator<AgentEvent, void, void> {
  const session = await Session.open(turn, read.sessionStore);
  const text = turn.checkpoint === undefined ? said : continued;
  const content: ClaudeContent[] = text === undefined ? contentOf(turn) : [{ type: "text", text }];
  const over = deferred<void>();
  const abort = new AbortController();
  const stream = query({
    prompt: promptOf(content, over.promise),
    options: {
      ...defaultOptions(turn, read),
      ...options,
      ...(session.exists ? { resume: session.id } : { sessionId: session.id }),
      abortController: abort,
      canUseTool: permissions.canUseTool,
      hooks: hooksOf(read.hooks, session),
      includePartialMessages: true,
      sessionStore: session,
      sessionStoreFlush: "eager",
      verbatimPrompts: true,
    },
  });
  const reader = new Reader(turn, reasoning);
  const clear = onAbort(turn, stream, abort);
  try {
    for await (const message of stream) {
      turn.signal.throwIfAborted();
      yield* reader.read({ ...message });
      if (reader.result !== undefined) break;
      const results = resultsIn({ ...message });
      session.hold(results);
      if (results.length > 0 && (await session.hasResults(results))) {
        const settle = await session.state(false);
        settle();
        yield turn.saveCheckpoint({ granted: [...permissions.granted] });
        await turn.flush();
      }
      session.release(results);
    }
  } finally {
    clear();
    over.resolve();
  }
  turn.signal.throwIfAborted();
  yield* reader.end();
  const settle = await session.state(true);
  const { approvals, questions } = permissions;
  if (approvals.length === 0 && questions === undefined) return yield* outcome(turn, reader.result, settle);
  settle();
  yield questions === undefined ? suspend(turn, "claude", {}, approvals) : askQuestions(turn, questions);
}

/** Defaults for untrusted callers. No tool runs on this machine unless the author enables it. */
function defaultOptions(turn: Turn, { stderr }: Run["read"]): object {
  const said = stderr ?? ((text: string) => turn.logger.debug("Claude Code wrote to standard error", { text }));
  return {
    permissionMode: "default",
    settingSources: [],
    tools: [askTool],
    spawnClaudeCodeProcess: (options: Parameters<typeof spawnKept>[0]) => spawnKept(options, said),
  };
}

interface Batch {
  readonly agent_id?: string;
  readonly tool_calls: readonly { readonly tool_use_id: string }[];
}

/** The user's hooks, and a hook that delays the next model call until the preceding results are stored. */
function hooksOf(hooks: Hooks | undefined, session: Session): Hooks {
  const hook = async ({ agent_id: subagent, tool_calls: calls }: Batch): Promise<object> => {
    // The transcripts of subagents have no checkpoints: after a crash, a subagent starts over.
    if (subagent === undefined) await session.whenReleased(calls.map(({ tool_use_id: id }) => id));
    return {};
  };
  return { ...hooks, PostToolBatch: [...(hooks?.["PostToolBatch"] ?? []), { hooks: [hook] }] };
}

/** Maximum time for a session to end after an interrupt, in milliseconds. */
const maxInterrupt = 2000;

/** An interrupt ends tools and the answer at once. The SDK's own abort would let them run for two more seconds. */
function onAbort({ signal }: Turn, stream: ClaudeStream, abort: AbortController): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = (): void => {
    timer = setTimeout(() => abort.abort(), stream.interrupt === undefined ? 0 : maxInterrupt);
    stream.interrupt?.().catch(() => abort.abort());
  };
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  return () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  };
}

import { defineAgent, text, type Agent, type Turn } from "@parley/server";

/** Resolves after that many milliseconds, or when the signal is aborted. */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done, { once: true });
  });
}

const file = { filename: "output.txt", mediaType: "text/plain" };

/** The behaviors of ACTS §11 that this agent implements, and two that the kits define. */
const behaviors = [
  "tck-complete-task",
  "tck-message-response",
  "tck-multi-turn",
  "tck-input-required",
  "tck-cancel",
  "tck-long-running",
  "tck-task-failure",
  "tck-reject-task",
  "tck-auth-required",
  "tck-artifact-text",
  "tck-artifact-data",
  "tck-artifact-file",
  "tck-artifact-file-url",
  "tck-stream-basic",
  "tck-stream-chunked",
];

export interface ActsAgentOptions {
  /** How long `tck-long-running` works, in milliseconds. Default 5 s. */
  readonly work?: number;
  /** Waits for this many milliseconds, or until the signal is aborted. Default: with a timer. */
  readonly wait?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** Default true. */
  readonly streaming?: boolean;
  /** URI of an extension that every request must name. */
  readonly requiredExtension?: string;
}

/**
 * The agent under test for ACTS files: the first word of a message selects its behaviour (ACTS §11). The first message of a task decides
 * for the whole task.
 */
export function actsAgent({
  work = 5000,
  wait: waiting = pause,
  streaming = true,
  requiredExtension,
}: ActsAgentOptions = {}): Agent {
  const wait = ({ signal }: Turn, milliseconds: number): Promise<void> => waiting(milliseconds, signal);
  return defineAgent({
    name: "ACTS agent",
    description: "Behaves as the first words of a message say.",
    version: "1.0.0",
    skills: [
      {
        id: "acts",
        name: "ACTS",
        description: "Behaves as it is told.",
        tags: ["conformance"],
        // `parley conform` requests the behaviors that a card offers.
        examples: behaviors,
      },
    ],
    defaultInputModes: ["text/plain", "application/json"],
    defaultOutputModes: ["text/plain", "application/json"],
    capabilities: {
      streaming,
      ...(requiredExtension === undefined
        ? {}
        : { extensions: [{ uri: requiredExtension, description: "Asked of every request", required: true }] }),
    },
    async *onMessage(turn) {
      const opening = turn.task?.history?.[0]?.parts[0];
      const said = opening !== undefined && "text" in opening ? opening.text : turn.text;
      switch (/^tck-[a-z-]+/.exec(said)?.[0]) {
        case "tck-message-response":
          return turn.reply("A direct answer.");
        case "tck-multi-turn":
        case "tck-input-required":
          // Without a status message, so that the history holds only the user's messages.
          yield { kind: "status", state: turn.text === "done" ? "TASK_STATE_COMPLETED" : "TASK_STATE_INPUT_REQUIRED" };
          return;
        case "tck-cancel":
          yield turn.working();
          await wait(turn, 60_000);
          return;
        case "tck-long-running":
          yield turn.working();
          await wait(turn, work / 2);
          yield turn.artifact({ artifactId: "result", parts: [text("Worked on it.")] });
          await wait(turn, work / 2);
          return;
        case "tck-task-failure":
          yield turn.failed("It went wrong, as it was told to.");
          return;
        case "tck-reject-task":
          yield turn.rejected("It does not want to, as it was told.");
          return;
        case "tck-auth-required":
          yield turn.authRequired("Sign in at https://example.com/sign-in.");
          await wait(turn, 60_000);
          return;
        case "tck-artifact-text":
          yield turn.artifact({ parts: [text("Generated text content")] });
          return;
        case "tck-artifact-data":
          yield turn.artifact({ parts: [{ data: { key: "value", count: 42 } }] });
          return;
        case "tck-artifact-file":
          yield turn.artifact({ parts: [{ raw: btoa("file content"), ...file }] });
          return;
        case "tck-artifact-file-url":
          yield turn.artifact({ parts: [{ url: "https://example.com/output.txt", ...file }] });
          return;
        case "tck-stream-basic":
          yield turn.working();
          yield turn.artifact({ parts: [text("Streamed text content")] });
          return;
        case "tck-stream-chunked":
          yield turn.working();
          yield turn.artifact({ artifactId: "chunks", parts: [text("one ")], open: true });
          yield turn.append("chunks", [text("two ")]);
          yield turn.append("chunks", [text("three")], { last: true });
          return;
        default:
          yield turn.completed("Done.");
          return;
      }
    },
  });
}

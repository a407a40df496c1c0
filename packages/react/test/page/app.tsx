import type { AgentCard } from "@parley/a2a";
import type { Part, Task } from "@parley/a2a/model";
import type { Interceptor, StreamItem, StreamReply } from "@parley/a2a/protocol";
import { RemoteAgent, useAgentCard, useConversation, useTask, type ConversationResult } from "@parley/react";
import { Component, Suspense, useEffect, useState, type ReactNode } from "react";

/* A chat with an agent at the page's own origin, rendered on a server or in the browser. */

/** Data that the server read for the page. */
export interface Initial {
  readonly card?: AgentCard;
  readonly tasks?: readonly Task[];
}

const onServer = typeof window === "undefined";

/** Commits of the components, counted by effects without dependencies, which run once per commit. And the number of events. */
export const counts: { conversation: number; task: number; events: number } = { conversation: 0, task: 0, events: 0 };

const counting: Interceptor = (next) => ({
  call: (operation, request, context) => next.call(operation, request, context),
  async stream(operation, request, context) {
    const { batches, ...reply } = await next.stream(operation, request, context);
    return { ...reply, batches: counted(batches) };
  },
});

async function* counted(batches: StreamReply["batches"]): AsyncGenerator<readonly StreamItem[]> {
  for await (const batch of batches) {
    counts.events += batch.length;
    yield batch;
  }
}

const agent = new RemoteAgent(onServer ? "http://agent.invalid" : location.origin, { interceptors: [counting] });

/** Shows why a child component failed. */
class Boundary extends Component<{ readonly children: ReactNode }, { readonly problem: string }> {
  override state = { problem: "" };
  static getDerivedStateFromError(thrown: unknown): { problem: string } {
    return { problem: String(thrown) };
  }
  override render(): ReactNode {
    const again = (): void => {
      agent.retry();
      this.setState({ problem: "" });
    };
    if (this.state.problem === "") return this.props.children;
    return (
      <p>
        {this.state.problem} <button onClick={again}>Try again</button>
      </p>
    );
  }
}

function Name({ card }: Initial): ReactNode {
  return <h1>{useAgentCard({ agent, ...(card && { card }), suspense: true }).card.name}</h1>;
}

function Shown({ part }: { part: Part }): ReactNode {
  if (part.text !== undefined) return <span className="text">{part.text}</span>;
  if (part.url !== undefined) return <a href={part.url}>{part.filename ?? part.url}</a>;
  return <code>{JSON.stringify(part.data ?? part.filename)}</code>;
}

/** The same task in another component. */
function Length({ taskId }: { taskId: string }): ReactNode {
  const { task, status } = useTask({ agent, task: taskId });
  useEffect(() => void (counts.task += 1));
  const texts = (task?.artifacts ?? []).flatMap(({ parts }) => parts.map(({ text = "" }) => text.length));
  return (
    <p className="length" data-status={status}>
      {texts.reduce((sum, each) => sum + each, 0)} characters
    </p>
  );
}

function Asked({ question, addToolApprovalResponse }: ConversationResult): ReactNode {
  if (question === undefined) return null;
  const { approvals, authorization } = question;
  return (
    <fieldset>
      <legend>{question.kind === "auth" ? "Authorization" : "Question"}</legend>
      {authorization?.url !== undefined && <a href={authorization.url}>Open {new URL(authorization.url).host}</a>}
      {approvals.map(({ id, toolName, input, approved }) => (
        <p key={id}>
          {toolName} {JSON.stringify(input)} {approved !== undefined && String(approved)}
          <button onClick={() => void addToolApprovalResponse({ id, approved: true })}>Approve {id}</button>
          <button onClick={() => void addToolApprovalResponse({ id, approved: false, reason: "No" })}>Deny {id}</button>
        </p>
      ))}
    </fieldset>
  );
}

function Chat({ tasks }: Initial): ReactNode {
  const [input, setInput] = useState("");
  const storage = onServer ? undefined : sessionStorage;
  const chat = useConversation({ agent, ...(storage && { storage }), ...(tasks && { tasks }) });
  useEffect(() => void (counts.conversation += 1));
  const { messages, status, error } = chat;
  const taskId = messages.at(-1)?.taskId;
  return (
    <main data-status={status}>
      {messages.map(({ id, role, parts, progress, failure }) => (
        <article key={id} className={role} aria-label={role}>
          {parts.map((part, at) => (
            <Shown key={at} part={part} />
          ))}
          {progress !== undefined && <em>{progress}</em>}
          {failure !== undefined && <strong>{failure}</strong>}
        </article>
      ))}
      {taskId !== undefined && <Length taskId={taskId} />}
      <Asked {...chat} />
      {error && <p role="alert">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void chat.sendMessage(input);
          setInput("");
        }}
      >
        <input aria-label="Message" value={input} onChange={(event) => setInput(event.target.value)} />
        {(["stop", "regenerate", "resumeStream", "clearError"] as const).map((name) => (
          <button key={name} type="button" onClick={() => void chat[name]()}>
            {name}
          </button>
        ))}
      </form>
    </main>
  );
}

export function App({ initial }: { initial: Initial }): ReactNode {
  const [isShown, show] = useState(true);
  return (
    <Boundary>
      <header>
        <Suspense fallback={<p>Connecting</p>}>
          <Name {...initial} />
        </Suspense>
        <button onClick={() => show(!isShown)}>Toggle</button>
      </header>
      {isShown && <Chat {...initial} />}
    </Boundary>
  );
}

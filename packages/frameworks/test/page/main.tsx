import { useChat } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { StrictMode, useState, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { A2AChatTransport, type A2AUIMessage } from "@parley/frameworks/chat";

/* A page as in the AI SDK's guides, with the agent at the page's own origin. The hash of the URL is the chat id. */

const transport = new A2AChatTransport({ agent: location.origin });
const id = location.hash.slice(1);

function Part({
  part,
  approve,
}: {
  part: A2AUIMessage["parts"][number];
  approve: (id: string, approved: boolean) => void;
}): ReactNode {
  if (part.type === "text") return <span className="text">{part.text}</span>;
  if (part.type === "file") return <a href={part.url}>{part.mediaType}</a>;
  if (part.type === "data-progress") return <em>{part.data.text}</em>;
  if (part.type === "data-artifact") return <code>{JSON.stringify(part.data.data)}</code>;
  if (part.type === "data-form") return <code>{JSON.stringify(part.data.schema)}</code>;
  if (part.type !== "dynamic-tool") return null;
  if (part.state !== "approval-requested")
    return (
      <span className="tool">
        {part.toolName}: {part.state}
      </span>
    );
  return (
    <fieldset>
      <legend>
        {part.toolName} {JSON.stringify(part.input)}
      </legend>
      <button onClick={() => approve(part.approval.id, true)}>Approve</button>
      <button onClick={() => approve(part.approval.id, false)}>Deny</button>
    </fieldset>
  );
}

function Chat({ messages: initial }: { messages: A2AUIMessage[] }): ReactNode {
  const [input, setInput] = useState("");
  const { messages, sendMessage, addToolApprovalResponse, stop, status, error } = useChat<A2AUIMessage>({
    id,
    transport,
    messages: initial,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const approve = (approvalId: string, approved: boolean): void =>
    void addToolApprovalResponse({ id: approvalId, approved });
  return (
    <main data-status={status}>
      <h1>Chat</h1>
      {messages.map((message) => (
        <article key={message.id} className={message.role} aria-label={message.role}>
          {message.parts.map((part, at) => (
            <Part key={at} part={part} approve={approve} />
          ))}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage({ text: input });
          setInput("");
        }}
      >
        <input aria-label="Message" value={input} onChange={(event) => setInput(event.target.value)} />
        <button type="button" onClick={() => void stop()}>
          Stop
        </button>
      </form>
    </main>
  );
}

const messages = await transport.messages(id);
createRoot(document.body.appendChild(document.createElement("div"))).render(
  <StrictMode>
    <Chat messages={messages} />
  </StrictMode>,
);

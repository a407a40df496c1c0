import { AssistantRuntimeProvider, ComposerPrimitive, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { useA2AArtifacts, useA2ARuntime, useA2ATask } from "@assistant-ui/react-a2a";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";

/* A page with the A2A runtime of assistant-ui, with the agent at the page's own origin. */

const Text = ({ text }) => <span className="text">{text}</span>;
const parts = { Text };

const UserMessage = () => (
  <MessagePrimitive.Root role="article" aria-label="user">
    <MessagePrimitive.Parts components={parts} />
  </MessagePrimitive.Root>
);

const AssistantMessage = () => (
  <MessagePrimitive.Root role="article" aria-label="assistant">
    <MessagePrimitive.Parts components={parts} />
  </MessagePrimitive.Root>
);

/** The runtime has artifacts apart from the messages. */
function Artifacts() {
  const task = useA2ATask();
  const artifacts = useA2AArtifacts();
  return (
    <section aria-label={task?.status.state}>
      {artifacts.map(({ artifactId, parts }) => (
        <pre key={artifactId} aria-label="artifact">
          {parts.map(({ text, data }) => text ?? JSON.stringify(data)).join("")}
        </pre>
      ))}
    </section>
  );
}

function Chat() {
  const [error, setError] = useState("");
  const runtime = useA2ARuntime({ baseUrl: location.origin, onError: ({ message }) => setError(message) });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <h1>Chat</h1>
      {error && <p role="alert">{error}</p>}
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage }} />
        <Artifacts />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Message" />
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

createRoot(document.body.appendChild(document.createElement("div"))).render(
  <StrictMode>
    <Chat />
  </StrictMode>,
);

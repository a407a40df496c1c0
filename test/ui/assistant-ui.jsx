import { ComposerPrimitive, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Travel } from "ag-ui.md:2";

/* The runtime of docs/ag-ui.md around the primitives of assistant-ui. */

const parts = { Text: ({ text }) => <span>{text}</span> };

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

createRoot(document.body.appendChild(document.createElement("div"))).render(
  <StrictMode>
    <Travel>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage }} />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Message" />
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </Travel>
  </StrictMode>,
);

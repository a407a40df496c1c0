import { CopilotChat, CopilotKitProvider, useInterrupt } from "@copilotkit/react-core/v2";
import { A2AAgent } from "@parley/frameworks/ag-ui";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import * as z from "zod";

/* A page with the stock chat of CopilotKit, with the agent at the page's own origin. The hash of the address is the id of the thread. */

const threadId = location.hash.slice(1);
const agent = new A2AAgent({ agent: location.origin, threadId });
const agents = { default: agent };

const activities = [
  {
    activityType: "a2a-data",
    content: z.object({ name: z.string().optional(), data: z.unknown() }),
    render: ({ content }) => <pre aria-label="data">{JSON.stringify(content.data)}</pre>,
  },
  {
    activityType: "a2a-file",
    content: z.object({ url: z.string().optional(), mediaType: z.string() }),
    render: ({ content }) => <a href={content.url}>{content.mediaType}</a>,
  },
];

function Approvals() {
  useInterrupt({
    enabled: ({ value }) => value.reason === "confirmation",
    render: ({ interrupts, resolve }) => (
      <div>
        {interrupts.map(({ id, metadata }) => (
          <fieldset key={id}>
            <legend>
              {metadata.toolName} {JSON.stringify(metadata.input)}
            </legend>
            <button onClick={() => resolve({ approved: true }, id)}>Approve</button>
            <button onClick={() => resolve({ approved: false }, id)}>Deny</button>
          </fieldset>
        ))}
      </div>
    ),
  });
  return null;
}

function Page() {
  const [error, setError] = useState("");
  return (
    <CopilotKitProvider
      selfManagedAgents={agents}
      renderActivityMessages={activities}
      onError={({ error: { message } }) => setError(message)}
    >
      <Approvals />
      <main style={{ height: "100vh" }}>
        <h1 style={{ position: "absolute", left: -9999 }}>Chat</h1>
        {error && <p role="alert">{error}</p>}
        <CopilotChat threadId={threadId} />
      </main>
    </CopilotKitProvider>
  );
}

createRoot(document.body.appendChild(document.createElement("div"))).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);

import { CopilotChat, CopilotKitProvider } from "@copilotkit/react-core/v2";
import { A2AAgent } from "@parley/frameworks/ag-ui";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { activities, Approvals } from "ag-ui.md:1";

/* The stock chat of CopilotKit with the components of docs/ag-ui.md. The hash of the address is the id of the thread. */

const threadId = location.hash.slice(1);
const agents = { default: new A2AAgent({ agent: location.origin, threadId }) };

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

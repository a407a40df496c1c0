import { RemoteAgent, useConversation } from "@parley/react";
import type { ReactNode } from "react";
import { Page, show } from "./page.tsx";

const agent = new RemoteAgent(location.origin);

function Chat(): ReactNode {
  // The storage keeps the ids, so a reload shows the same conversation.
  const chat = useConversation({ agent, storage: sessionStorage });
  return (
    <Page {...chat} send={(text) => void chat.sendMessage(text)} stop={() => void chat.stop()}>
      {chat.messages.map(({ id, role, parts, progress }) => (
        <article key={id} aria-label={role}>
          {parts.map((part, at) => (
            <p key={at}>{part.text}</p>
          ))}
          {progress !== undefined && <em>{progress}</em>}
        </article>
      ))}
    </Page>
  );
}

show(<Chat />);

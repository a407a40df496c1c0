import { useChat } from "@ai-sdk/react";
import { A2AChatTransport, type A2AUIMessage } from "@parley/frameworks/chat";
import type { ReactNode } from "react";
import { Page, show } from "./page.tsx";

// The URL has the chat id, so a reload shows the same chat.
location.hash ||= crypto.randomUUID();
const id = location.hash.slice(1);
const transport = new A2AChatTransport({ agent: location.origin });

function Chat({ initial }: { initial: A2AUIMessage[] }): ReactNode {
  const chat = useChat<A2AUIMessage>({ id, transport, messages: initial, resume: true });
  return (
    <Page {...chat} send={(text) => void chat.sendMessage({ text })} stop={() => void chat.stop()}>
      {chat.messages.map(({ id: key, role, parts }) => (
        <article key={key} aria-label={role}>
          {parts.map((part, at) => {
            if (part.type === "text") return <p key={at}>{part.text}</p>;
            return part.type === "data-progress" && <em key={at}>{part.data.text}</em>;
          })}
        </article>
      ))}
    </Page>
  );
}

show(<Chat initial={await transport.messages(id)} />);

"use client";

import { RemoteAgent, useConversation } from "@parley/react";
import { useState, type ReactNode } from "react";

const travel = new RemoteAgent("https://agents.example.com/travel");

export function Chat(): ReactNode {
  const [input, setInput] = useState("");
  const { messages, sendMessage, stop, status, error } = useConversation({
    agent: travel,
    id: "trip-7",
    storage: globalThis.sessionStorage,
  });
  return (
    <main>
      {messages.map(({ id, role, parts }) => (
        <article key={id} aria-label={role}>
          {parts.map((part) => part.text)}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage(input);
          setInput("");
        }}
      >
        <input aria-label="Message" value={input} onChange={(event) => setInput(event.target.value)} />
        {status === "streaming" && <button onClick={() => void stop()}>Stop</button>}
      </form>
    </main>
  );
}

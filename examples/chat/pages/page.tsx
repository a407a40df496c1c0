import { StrictMode, useState, type ReactNode } from "react";
import { createRoot } from "react-dom/client";

interface PageProps {
  readonly status: string;
  readonly error: Error | undefined;
  readonly send: (text: string) => void;
  readonly stop: () => void;
  readonly children: ReactNode;
}

/** The layout around the messages, shared by both front ends. */
export function Page({ status, error, send, stop, children }: PageProps): ReactNode {
  const [input, setInput] = useState("");
  return (
    <main data-status={status}>
      <h1>Travel agent</h1>
      {children}
      {error && <p role="alert">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send(input);
          setInput("");
        }}
      >
        <input aria-label="Message" value={input} onChange={(event) => setInput(event.target.value)} />
        <button>Send</button>
        <button type="button" onClick={stop}>
          Stop
        </button>
      </form>
    </main>
  );
}

export function show(page: ReactNode): void {
  createRoot(document.body.appendChild(document.createElement("div"))).render(<StrictMode>{page}</StrictMode>);
}

import { StrictMode } from "react";
import { renderToString } from "react-dom/server";
import { App, type Initial } from "./app.tsx";

/** The page as rendered by a server, without its script. */
export function render(initial: Initial): string {
  return renderToString(
    <StrictMode>
      <App initial={initial} />
    </StrictMode>,
  );
}

import { StrictMode } from "react";
import { createRoot, hydrateRoot } from "react-dom/client";
import { App, counts, type Initial } from "./app.tsx";

/* Hydrates the server's markup, or renders the page in the browser. */

const frames = { count: 0 };
function count(): void {
  frames.count += 1;
  requestAnimationFrame(count);
}
requestAnimationFrame(count);
Object.assign(globalThis, { measured: () => ({ ...counts, frames: frames.count }) });

const root = document.querySelector("#root");
if (root === null) throw new Error("The page has no root");
const { text } = document.querySelector<HTMLScriptElement>("#initial") ?? {};
const initial: Initial = text === undefined ? {} : (JSON.parse(text) as Initial);
const app = (
  <StrictMode>
    <App initial={initial} />
  </StrictMode>
);
if (text === undefined) createRoot(root).render(app);
else hydrateRoot(root, app);

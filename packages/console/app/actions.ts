import { computed, signal } from "@preact/signals";
import type { AgentEntry } from "../src/api.ts";
import { operators } from "./operate/api.ts";
import { go, route, screens, type Screen } from "./route.ts";
import { readOnly } from "./saved.ts";
import { agentOf, agents, session } from "./server.ts";
import { chatOf, newChat } from "./chats.ts";
import { clearWire, exchanges } from "./wire.ts";

/* The actions of the palette and the keyboard shortcuts. */

export interface Action {
  readonly name: string;
  /** Its shortcut, such as `g t`: first `g`, then `t`. */
  readonly keys?: string;
  run(): void | Promise<void>;
}

export const screenNames: Readonly<Record<Screen, string>> = {
  talk: "Talk",
  tasks: "Tasks",
  inbox: "Inbox",
  timeline: "Timeline",
  wire: "Wire",
  card: "Card",
  operate: "Operate",
  "sign-in": "Sign in",
};

const screenKeys: Readonly<Record<(typeof screens)[number], string>> = {
  talk: "g t",
  tasks: "g k",
  inbox: "g i",
  timeline: "g l",
  wire: "g w",
  card: "g c",
  operate: "g o",
};

/** The available screens. Operate needs the operators' API. */
export const shownScreens = computed(() =>
  screens.filter((name) => name !== "operate" || (operators.value !== undefined && readOnly.value === undefined)),
);

/** The open overlay. */
export const overlay = signal<"palette" | "keys" | undefined>(undefined);

/** The selected agent. */
export function agentShown(): AgentEntry | undefined {
  const { agent } = route.value;
  return agentOf(agent) ?? (agent === undefined ? agents.value[0] : undefined);
}

function showScreen(screen: Screen): void {
  const agent = agentShown();
  const { beside } = route.value;
  go({ screen, ...(agent !== undefined && { agent: agent.id }), ...(beside !== undefined && { beside }) });
}

/** Focuses an element once its screen is loaded. `at`: index among the elements that match the selector. */
function focusOn(selector: string, at: number = 0, frames: number = 300): void {
  requestAnimationFrame(() => {
    const found = [...document.querySelectorAll<HTMLElement>(selector)].at(at);
    if (found !== undefined) found.focus();
    else if (frames > 0) focusOn(selector, at, frames - 1);
  });
}

/** The actions that are available now. */
export function actions(): readonly Action[] {
  const agent = agentShown();
  return [
    ...shownScreens.value.map((screen) => ({
      name: `Show ${screenNames[screen]}`,
      keys: screenKeys[screen],
      run: () => showScreen(screen),
    })),
    ...agents.value.map(({ id, card }) => ({
      name: `Talk to ${card.name}`,
      run: () => go({ screen: "talk", agent: id }),
    })),
    ...(session.value?.mode === "inspect" ? [{ name: "Connect to an agent", keys: "a", run: connectForm }] : []),
    ...(agent === undefined ? [] : agentActions(agent)),
    { name: "Write a message", keys: "m", run: () => (showScreen("talk"), focusOn("textarea[aria-label=Message]")) },
    { name: "Filter the list", keys: "/", run: () => focusOn("input[type=search]") },
    { name: "Copy the selected request as curl", keys: "y", run: () => copyChosen("curl") },
    { name: "Copy the selected request as TypeScript", run: () => copyChosen("code") },
    { name: "Clear the wire log", run: clearWire },
    { name: "Save this session to a file", keys: "s", run: async () => (await import("./session-file.ts")).save() },
    { name: "Open a session from a file", keys: "o", run: async () => (await import("./session-file.ts")).choose() },
    { name: "Show keyboard shortcuts", keys: "?", run: () => void (overlay.value = "keys") },
  ];
}

function agentActions(agent: AgentEntry): readonly Action[] {
  return [
    {
      name: "New conversation",
      keys: "n",
      run: () => {
        newChat(agent);
        showScreen("talk");
        focusOn(`.pane[data-agent="${CSS.escape(agent.id)}"] textarea[aria-label=Message]`, -1);
      },
    },
    { name: "Cancel the task", keys: "x", run: () => chatOf(agent)?.cancel() },
    ...(agent.signIn === undefined
      ? []
      : [{ name: `Sign in to ${agent.card.name}`, keys: "g s", run: () => showScreen("sign-in") }]),
    ...agents.value
      .filter(({ id }) => id !== agent.id)
      .map(({ id, card }) => ({
        name: `Talk to ${card.name} beside ${agent.card.name}`,
        run: () => go({ screen: "talk", agent: agent.id, beside: id }),
      })),
  ];
}

function connectForm(): void {
  const details = document.querySelector<HTMLDetailsElement>("details.add");
  if (details) details.open = true;
  focusOn("input[name=url]");
}

async function copyChosen(as: "curl" | "code"): Promise<void> {
  const chosen = exchanges.value.find(({ request }) => String(request.exchange) === route.value.item);
  if (chosen === undefined) return;
  const { asCode, asCurl } = await import("./code.ts");
  await navigator.clipboard.writeText(as === "curl" ? asCurl(chosen.request) : asCode(chosen.request));
}

let first = "";

/** Runs the action of a shortcut, unless the user is typing. */
export function onKey(event: KeyboardEvent): void {
  const { key, target } = event;
  if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "k") {
    event.preventDefault();
    overlay.value = overlay.value === "palette" ? undefined : "palette";
    return;
  }
  if (key === "Escape") overlay.value = undefined;
  // While an overlay loads, key presses are input for it, not shortcuts.
  if (overlay.value !== undefined) return;
  const isWriting = target instanceof HTMLElement && target.closest("input, textarea, select, dialog") !== null;
  if (isWriting || event.ctrlKey || event.metaKey || event.altKey || key.length > 1) return;
  const pressed = first === "" ? key : `${first} ${key}`;
  const all = actions();
  const found = all.find(({ keys }) => keys === pressed);
  first = found === undefined && all.some(({ keys }) => keys?.startsWith(`${pressed} `)) ? pressed : "";
  if (found === undefined) return;
  event.preventDefault();
  void found.run();
}

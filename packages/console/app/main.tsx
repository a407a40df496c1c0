import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { agentShown, onKey, overlay, screenNames, shownScreens } from "./actions.ts";
import { lazily } from "./lazy.tsx";
import { findOperators, operators } from "./operate/api.ts";
import { Badge } from "./operate/badge.tsx";
import { linkTo, route } from "./route.ts";
import { fileProblem, readOnly } from "./saved.ts";
import { Agents } from "./screens/agents.tsx";
import { Talk } from "./screens/talk.tsx";
import { agentOf, agents, begin, session, signIn } from "./server.ts";
import { followWire } from "./wire.ts";

const SignIn = lazily(async () => (await import("./screens/sign-in.tsx")).SignIn);
const AgentSignIn = lazily(async () => (await import("./screens/agent-sign-in.tsx")).AgentSignIn);
const Tasks = lazily(async () => (await import("./screens/tasks.tsx")).Tasks);
const Wire = lazily(async () => (await import("./screens/wire.tsx")).Wire);
const Overlay = lazily(async () => (await import("./screens/palette.tsx")).Overlay);
const Opened = lazily(async () => (await import("./screens/opened.tsx")).Opened);
const Card = lazily(async () => (await import("./screens/card.tsx")).Card);
const Timeline = lazily(async () => (await import("./screens/timeline.tsx")).Timeline);

const Operate = lazily(async () => (await import("./screens/operate.tsx")).Operate);

const problem = signal("");

/** The page: a sidebar with the agents, and one screen of the selected agent. */
function App() {
  const { screen, agent: id, beside } = route.value;
  const agent = agentShown();
  const title = agent?.card.name;
  const isQuiet = readOnly.value !== undefined && (screen === "tasks" || screen === "inbox");
  useEffect(() => {
    document.title = title === undefined ? "Parley console" : `${title} · Parley console`;
  }, [title]);
  if (problem.value !== "") return <p class="problem empty">{problem.value}</p>;
  if (signIn.value !== undefined) return <SignIn how={signIn.value} />;
  if (session.value === undefined) return <p class="quiet empty">Loading …</p>;
  return (
    <div class="page">
      <aside>
        <p class="brand">
          Parley console
          <button type="button" class="small" onClick={() => (overlay.value = "palette")} title="Actions (Ctrl K)">
            Actions
          </button>
        </p>
        <Agents />
      </aside>
      <main>
        {(fileProblem.value !== "" || readOnly.value !== undefined) && <Opened />}
        <nav class="screens" aria-label="Screens">
          {shownScreens.value.map((name) => (
            <a
              key={name}
              href={linkTo({
                screen: name,
                ...(agent !== undefined && { agent: agent.id }),
                ...(beside !== undefined && { beside }),
              })}
              aria-current={name === screen ? "page" : undefined}
            >
              {screenNames[name]}
              {name === "operate" && <Badge />}
            </a>
          ))}
        </nav>
        {screen === "timeline" && <Timeline agent={id} task={route.value.item} />}
        {screen === "wire" && <Wire agent={id} />}
        {screen === "operate" && shownScreens.value.includes("operate") && <Operate />}
        {isQuiet && <p class="quiet empty">A saved session has no live tasks. See Talk, Timeline and Wire.</p>}
        {screen === "tasks" && !isQuiet && (
          <Tasks agents={id === undefined ? agents.value : agent === undefined ? [] : [agent]} screen="tasks" />
        )}
        {screen === "inbox" && !isQuiet && <Tasks agents={agents.value} screen="inbox" />}
        {(screen === "talk" || screen === "card") && agent === undefined && (
          <p class="quiet empty">Connect to an agent to talk to it.</p>
        )}
        {screen === "talk" && agent !== undefined && (
          <Talk key={agent.id} agent={agent} beside={beside === agent.id ? undefined : agentOf(beside)} />
        )}
        {screen === "sign-in" && agent !== undefined && <AgentSignIn key={agent.id} agent={agent} />}
        {screen === "card" && agent !== undefined && <Card agent={agent} />}
      </main>
      {overlay.value !== undefined && <Overlay />}
    </div>
  );
}

addEventListener("keydown", onKey);
// Needs a signed-in user. If this fails, the console works without the operators' API.
effect(() => {
  if (session.value !== undefined && operators.peek() === undefined) findOperators().catch(() => {});
});
render(<App />, document.body);

try {
  await begin();
  if (session.value?.mode === "inspect") void followWire();
} catch (thrown) {
  problem.value = thrown instanceof Error ? thrown.message : String(thrown);
}

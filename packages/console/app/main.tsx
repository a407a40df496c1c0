import { signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { lazily } from "./lazy.tsx";
import { linkTo, route, screens, type Screen } from "./route.ts";
import { Agents } from "./screens/agents.tsx";
import { Talk } from "./screens/talk.tsx";
import { Tasks } from "./screens/tasks.tsx";
import { Wire } from "./screens/wire.tsx";
import { agentOf, agents, loadSession, session } from "./server.ts";
import { followWire } from "./wire.ts";

const names: Readonly<Record<Screen, string>> = {
  talk: "Talk",
  tasks: "Tasks",
  inbox: "Inbox",
  timeline: "Timeline",
  wire: "Wire",
  card: "Card",
};

const Card = lazily(async () => (await import("./screens/card.tsx")).Card);
const Timeline = lazily(async () => (await import("./screens/timeline.tsx")).Timeline);

const problem = signal("");

/** The page: the agents at the side, and one screen of the chosen one. */
function App() {
  const { screen, agent: id } = route.value;
  const agent = agentOf(id) ?? (id === undefined ? agents.value[0] : undefined);
  const title = agent?.card.name;
  useEffect(() => {
    document.title = title === undefined ? "Parley console" : `${title} · Parley console`;
  }, [title]);
  if (problem.value !== "") return <p class="problem empty">{problem.value}</p>;
  if (session.value === undefined) return <p class="quiet empty">Loading …</p>;
  return (
    <div class="page">
      <aside>
        <p class="brand">Parley console</p>
        <Agents />
      </aside>
      <main>
        <nav class="screens" aria-label="Screens">
          {screens.map((name) => (
            <a
              key={name}
              href={linkTo({ screen: name, ...(agent !== undefined && { agent: agent.id }) })}
              aria-current={name === screen ? "page" : undefined}
            >
              {names[name]}
            </a>
          ))}
        </nav>
        {screen === "timeline" && <Timeline agent={id} task={route.value.item} />}
        {screen === "wire" && <Wire agent={id} />}
        {screen === "tasks" && (
          <Tasks agents={id === undefined ? agents.value : agent === undefined ? [] : [agent]} screen="tasks" />
        )}
        {screen === "inbox" && <Tasks agents={agents.value} screen="inbox" />}
        {(screen === "talk" || screen === "card") && agent === undefined && (
          <p class="quiet empty">Connect to an agent to talk to it.</p>
        )}
        {screen === "talk" && agent !== undefined && <Talk key={agent.id} agent={agent} />}
        {screen === "card" && agent !== undefined && <Card agent={agent} />}
      </main>
    </div>
  );
}

render(<App />, document.body);

try {
  await loadSession();
  if (session.value?.mode === "inspect") void followWire();
} catch (thrown) {
  problem.value = thrown instanceof Error ? thrown.message : String(thrown);
}

import { useSignal } from "@preact/signals";
import { bindings, type Binding } from "../../src/api.ts";
import { Problem, textsOf, useAttempt } from "../parts/form.tsx";
import { linkTo, go, route } from "../route.ts";
import { readOnly } from "../saved.ts";
import { agents, connectTo, disconnect, session } from "../server.ts";

/** The agents, and a form that connects to another one. */
export function Agents() {
  const { screen, agent: chosen } = route.value;
  const canConnect = session.value?.mode === "inspect" && readOnly.value === undefined;
  return (
    <nav class="agents" aria-label="Agents">
      <ul>
        {agents.value.map(({ id, card, url, binding, version, tenant, signIn }) => (
          <li key={id}>
            <a href={linkTo({ screen, agent: id })} aria-current={id === chosen ? "true" : undefined}>
              <span dir="auto">{card.name}</span>
              <span class="quiet">
                {binding} {version} · {hostOf(url)}
                {tenant !== undefined && ` · ${tenant}`}
              </span>
            </a>
            {signIn !== undefined && signIn.ways.length > 0 && (
              <a
                class="quiet"
                href={linkTo({ screen: "sign-in", agent: id })}
                aria-label={`${signIn.logins.length === 0 ? "Sign in to" : "Signed in to"} ${card.name}`}
                title={signIn.logins[0]?.account}
              >
                {signIn.logins.length === 0 ? "Sign in" : "Signed in"}
              </a>
            )}
            {canConnect && (
              <button
                type="button"
                class="small"
                aria-label={`Disconnect ${card.name}`}
                onClick={() => void disconnect(id)}
              >
                ×
              </button>
            )}
          </li>
        ))}
      </ul>
      {canConnect && (
        <details class="add" open={agents.value.length === 0}>
          <summary>Connect to an agent</summary>
          <Connect />
        </details>
      )}
    </nav>
  );
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

/** A form that connects to an agent. */
function Connect() {
  const busy = useSignal(false);
  const { problem, attempt } = useAttempt();
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const text = textsOf(form);
    busy.value = true;
    await attempt(async () => {
      const binding = bindings.find((name) => name === text("binding"));
      const { id } = await connectTo({
        url: text("url").trim(),
        ...withBinding(binding),
        headers: headersOf(text("headers")),
      });
      form.reset();
      go({ screen: "talk", agent: id });
    });
    busy.value = false;
  };
  return (
    <form
      class="connect"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(event.currentTarget);
      }}
    >
      <label>
        URL
        <input name="url" type="url" required placeholder="http://localhost:4000" autocomplete="off" />
      </label>
      <details>
        <summary>Options</summary>
        <label>
          Binding
          <select name="binding">
            <option value="">first on the card</option>
            {bindings.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          Headers, one per line
          <textarea name="headers" rows={2} placeholder="Authorization: Bearer …" spellcheck={false} />
        </label>
        <p class="quiet">Headers stay in memory until the command exits. To store credentials, use parley login.</p>
      </details>
      <button type="submit" disabled={busy.value}>
        {busy.value ? "Connecting …" : "Connect"}
      </button>
      <Problem text={problem.value} />
    </form>
  );
}

function withBinding(binding: Binding | undefined): { readonly binding?: Binding } {
  return binding === undefined ? {} : { binding };
}

function headersOf(text: string): Readonly<Record<string, string>> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
      if (name === undefined || value === undefined)
        throw new Error(`Headers are "Name: value"; got ${JSON.stringify(line)}`);
      return [name, value] as const;
    }),
  );
}

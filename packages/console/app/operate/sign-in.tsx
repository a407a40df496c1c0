import { useSignal } from "@preact/signals";
import type { OperatorsEntry } from "../../src/api.ts";
import { operators, refusedBy, signInAsOperator } from "./api.ts";

interface Way {
  readonly name: string;
  /** Returns the headers with the credentials. */
  headers(user: string, secret: string): Readonly<Record<string, string>>;
}

/** Asks for the operator's credentials. They can differ from those for the agents. */
export function OperatorSignIn() {
  const ways = operators.value === undefined ? [] : waysOf(operators.value);
  const chosen = useSignal(0);
  const problem = useSignal(refusedBy.value);
  const way = ways[chosen.value];
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const fields = new FormData(event.currentTarget);
    const text = (name: string): string => {
      const given = fields.get(name);
      return typeof given === "string" ? given : "";
    };
    try {
      await signInAsOperator(way?.headers(text("user"), text("secret")) ?? {});
    } catch (thrown) {
      problem.value = thrown instanceof Error ? thrown.message : String(thrown);
    }
  };
  return (
    <form class="connect operator" onSubmit={(event) => void submit(event)}>
      <h1>Sign in as an operator</h1>
      <p class="problem" role="alert">
        {problem.value}
      </p>
      {ways.length > 1 && (
        <label>
          With
          <select
            name="way"
            value={chosen.value}
            onChange={({ currentTarget }) => (chosen.value = currentTarget.selectedIndex)}
          >
            {ways.map(({ name }, at) => (
              <option key={name} value={at}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {way?.name === "Password" && (
        <label>
          User
          <input name="user" required autocomplete="username" />
        </label>
      )}
      {way !== undefined && (
        <>
          <label>
            {way.name}
            <input name="secret" type="password" required autocomplete="off" />
          </label>
          <button type="submit">Sign in</button>
          <p class="quiet">The credentials stay in this tab.</p>
        </>
      )}
    </form>
  );
}

function waysOf({ bearer, basic, apiKeys }: OperatorsEntry): readonly Way[] {
  return [
    ...(bearer
      ? [{ name: "Bearer token", headers: (_: string, secret: string) => authorization("Bearer", secret) }]
      : []),
    ...apiKeys.map((name) => ({
      name: `API key (${name})`,
      headers: (_: string, secret: string) => ({ [name]: secret }),
    })),
    ...(basic
      ? [{ name: "Password", headers: (user: string, secret: string) => authorization("Basic", encoded(user, secret)) }]
      : []),
  ];
}

function authorization(scheme: string, value: string): Readonly<Record<string, string>> {
  return { authorization: `${scheme} ${value}` };
}

function encoded(user: string, secret: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(`${user}:${secret}`)));
}

import { useSignal } from "@preact/signals";
import type { SignIn as How } from "../../src/api.ts";
import { signInWith } from "../server.ts";

/** A way to sign in: a scheme, and for an API key its header. */
interface Way {
  readonly name: string;
  readonly header: string;
  readonly kind: "bearer" | "key" | "basic";
}

/** The schemes of the cards; if no card is public, bearer token and password. */
function waysOf({ bearer, basic, apiKeys }: How): readonly Way[] {
  const ways: readonly Way[] = [
    ...(bearer ? [{ name: "Bearer token", header: "authorization", kind: "bearer" as const }] : []),
    ...apiKeys.map((header) => ({ name: `API key (${header})`, header, kind: "key" as const })),
    ...(basic ? [{ name: "User and password", header: "authorization", kind: "basic" as const }] : []),
  ];
  if (ways.length > 0) return ways;
  return waysOf({ mode: "server", bearer: true, basic: true, apiKeys: [] });
}

/** Asks for credentials. The page sends them with every request to this server until the tab is closed. */
export function SignIn({ how }: { readonly how: How }) {
  const ways = waysOf(how);
  const chosen = useSignal(0);
  const problem = useSignal("");
  const way = ways[chosen.value];
  if (way === undefined) return null;
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const fields = new FormData(event.currentTarget);
    const text = (name: string): string => {
      const given = fields.get(name);
      return typeof given === "string" ? given : "";
    };
    problem.value = "";
    try {
      await signInWith({ [way.header]: valueOf(way, text("user"), text("secret")) });
    } catch (thrown) {
      problem.value = thrown instanceof Error ? thrown.message : String(thrown);
    }
  };
  return (
    <main class="sign-in">
      <h1>Sign in</h1>
      <form class="connect" onSubmit={(event) => void submit(event)}>
        {ways.length > 1 && (
          <label>
            Scheme
            <select name="way" onChange={({ currentTarget }) => (chosen.value = currentTarget.selectedIndex)}>
              {ways.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        {way.kind === "basic" && (
          <label>
            User
            <input name="user" required autocomplete="username" />
          </label>
        )}
        <label>
          {way.kind === "basic" ? "Password" : way.name}
          <input name="secret" type="password" required autocomplete="off" />
        </label>
        <button type="submit">Sign in</button>
        {problem.value !== "" && (
          <p class="problem" role="alert">
            {problem.value}
          </p>
        )}
        <p class="quiet">The credentials stay in this tab.</p>
      </form>
    </main>
  );
}

function valueOf({ kind }: Way, user: string, secret: string): string {
  if (kind === "key") return secret;
  if (kind === "bearer") return `Bearer ${secret}`;
  const bytes = new TextEncoder().encode(`${user}:${secret}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

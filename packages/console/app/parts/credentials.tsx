import { useSignal } from "@preact/signals";
import { Problem, textsOf, useAttempt } from "./form.tsx";

/** The schemes that a server accepts. */
interface Schemes {
  readonly bearer: boolean;
  readonly basic: boolean;
  /** Names of the headers for API keys. */
  readonly apiKeys: readonly string[];
}

/** A way to sign in, and the header with its credentials. */
interface Way {
  readonly name: string;
  readonly header: string;
  readonly kind: "bearer" | "key" | "basic";
}

function waysOf({ bearer, basic, apiKeys }: Schemes): readonly Way[] {
  return [
    ...(bearer ? [{ name: "Bearer token", header: "authorization", kind: "bearer" as const }] : []),
    ...apiKeys.map((header) => ({ name: `API key (${header})`, header, kind: "key" as const })),
    ...(basic ? [{ name: "User and password", header: "authorization", kind: "basic" as const }] : []),
  ];
}

interface CredentialsProps {
  readonly title: string;
  readonly schemes: Schemes;
  /** The reason why the server rejected earlier credentials. */
  readonly rejected?: string;
  /** Signs in with a header. Rejects if the server does not accept it. */
  readonly onSignIn: (headers: Readonly<Record<string, string>>) => Promise<void>;
}

/** Asks the user for credentials. If there are several schemes, the user selects one. */
export function Credentials({ title, schemes, rejected, onSignIn }: CredentialsProps) {
  const ways = waysOf(schemes);
  const chosen = useSignal(0);
  const { problem, attempt } = useAttempt(rejected);
  const way = ways[chosen.value];
  const submit = (form: HTMLFormElement): void => {
    const text = textsOf(form);
    if (way !== undefined) void attempt(() => onSignIn({ [way.header]: valueOf(way, text("user"), text("secret")) }));
  };
  return (
    <form
      class="connect"
      onSubmit={(event) => {
        event.preventDefault();
        submit(event.currentTarget);
      }}
    >
      <h1>{title}</h1>
      <Problem text={problem.value} />
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
      {way?.kind === "basic" && (
        <label>
          User
          <input name="user" required autocomplete="username" />
        </label>
      )}
      {way !== undefined && (
        <>
          <label>
            {way.kind === "basic" ? "Password" : way.name}
            <input name="secret" type="password" required autocomplete="off" />
          </label>
          <button type="submit">Sign in</button>
          <p class="quiet">The credentials stay in this tab.</p>
        </>
      )}
    </form>
  );
}

function valueOf({ kind }: Way, user: string, secret: string): string {
  if (kind === "key") return secret;
  if (kind === "bearer") return `Bearer ${secret}`;
  const bytes = new TextEncoder().encode(`${user}:${secret}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

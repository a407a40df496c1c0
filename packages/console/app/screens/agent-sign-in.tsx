import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import {
  loginFlows,
  type AgentEntry,
  type AgentSignIn as SignInOf,
  type LoginEvent,
  type LoginFlow,
  type SchemeLogin,
  type SignInScheme,
} from "../../src/api.ts";
import { Problem, useAttempt } from "../parts/form.tsx";
import { Time } from "../parts/time.tsx";
import { WebLink } from "../parts/markdown.tsx";
import { logIn, logOut, reconnect } from "../server.ts";

/** Signs in to an agent of `parley inspect` with the schemes of its card. */
export function AgentSignIn({ agent }: { readonly agent: AgentEntry }) {
  const { card, signIn } = agent;
  const { problem, attempt } = useAttempt();
  return (
    <div class="card">
      <h1 dir="auto">Sign in to {card.name}</h1>
      {signIn === undefined ? (
        <p>You entered this agent's credentials when you connected. To use others, disconnect and connect again.</p>
      ) : (
        <>
          <Stored signIn={signIn} onSignOut={() => void attempt(() => logOut(agent.id))} />
          {signIn.ways.length === 0 ? <p>The card requires no credentials.</p> : <Ways agent={agent} signIn={signIn} />}
          <p class="quiet">
            Logins are shared with parley login.{" "}
            <button type="button" class="small" onClick={() => void attempt(() => reconnect(agent.id))}>
              Connect again
            </button>{" "}
            to use logins made there since.
          </p>
        </>
      )}
      <Problem text={problem.value} />
    </div>
  );
}

/** The stored logins. */
function Stored({ signIn: { logins }, onSignOut }: { readonly signIn: SignInOf; readonly onSignOut: () => void }) {
  if (logins.length === 0) return null;
  return (
    <section aria-label="Signed in">
      {logins.map(({ scheme, account, since, secretsIn }) => (
        <p key={scheme} dir="auto">
          Signed in{account !== undefined && ` as ${account}`} with {scheme}, since <Time at={since} />.{" "}
          <span class="quiet">The secret is in {secretsIn === "keychain" ? "the keychain" : "a private file"}.</span>
        </p>
      ))}
      <button type="button" onClick={onSignOut}>
        Sign out
      </button>
    </section>
  );
}

const kinds: Readonly<Record<SignInScheme["kind"], string>> = {
  apiKey: "API key",
  basic: "user and password",
  bearer: "token",
  oauth2: "OAuth",
  mutualTls: "client certificate",
  unsupported: "not supported",
};

function wayName(schemes: readonly SignInScheme[]): string {
  return schemes.map(({ name, kind }) => `${name} (${kinds[kind]})`).join(" and ");
}

/** The reason why the console cannot sign in with a scheme, and the alternative. `undefined`: it can. */
function obstacle({ kind, flows }: SignInScheme): string | undefined {
  if (kind === "mutualTls")
    return "This scheme requires a client certificate (mutual TLS), which the console does not have. Call the agent from a program: connect(url, { tls: { cert, key } }) of @parley/node.";
  if (kind === "unsupported")
    return "Parley has no login for this scheme. Connect again, and add its header under Options.";
  if (kind === "oauth2" && flows.length === 0)
    return "Parley does not support this scheme's OAuth flows. Get a token elsewhere, and run parley login --with-token.";
  return undefined;
}

function Ways({ agent, signIn: { ways } }: { readonly agent: AgentEntry; readonly signIn: SignInOf }) {
  const usable = ways.findIndex((schemes) => schemes.every((scheme) => obstacle(scheme) === undefined));
  const chosen = useSignal(Math.max(0, usable));
  const schemes = ways[chosen.value] ?? [];
  return (
    <>
      {ways.length > 1 && (
        <label class="narrow">
          Scheme
          <select
            value={chosen.value}
            onChange={({ currentTarget }) => (chosen.value = currentTarget.selectedIndex)}
            name="way"
          >
            {ways.map((way, at) => (
              <option key={at} value={at}>
                {wayName(way)}
              </option>
            ))}
          </select>
        </label>
      )}
      <LoginForm key={chosen.value} agent={agent} schemes={schemes} />
    </>
  );
}

interface LoginFormProps {
  readonly agent: AgentEntry;
  /** The user must sign in with all of these schemes. */
  readonly schemes: readonly SignInScheme[];
}

function LoginForm({ agent, schemes }: LoginFormProps) {
  const events = useSignal<readonly LoginEvent[]>([]);
  const running = useSignal<AbortController | undefined>(undefined);
  const leave = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => leave.current?.abort(), []);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const stop = new AbortController();
    leave.current = stop;
    running.value = stop;
    events.value = [];
    try {
      for await (const event of logIn(agent.id, enteredIn(form, schemes), stop.signal)) {
        events.value = [...events.value, event];
        if (event.kind === "done") form.reset();
      }
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      events.value = [{ kind: "failed", message: stop.signal.aborted ? "The login was canceled" : message }];
    } finally {
      running.value = undefined;
    }
  };
  const isUsable = schemes.every((scheme) => obstacle(scheme) === undefined);
  return (
    <form
      class="asked narrow"
      aria-label="Sign in"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(event.currentTarget);
      }}
    >
      {schemes.map((scheme, at) => (
        <SchemeFields key={scheme.name} scheme={scheme} prefix={`${at} `} />
      ))}
      {isUsable && (
        <>
          <p class="quiet">
            parley inspect on this machine receives and stores your input. Codes and tokens never reach this page.
          </p>
          <div class="tools">
            <button type="submit" disabled={running.value !== undefined}>
              {running.value === undefined ? "Sign in" : "Signing in …"}
            </button>
            {running.value !== undefined && (
              <button type="button" onClick={() => running.value?.abort()}>
                Cancel
              </button>
            )}
          </div>
        </>
      )}
      <Progress events={events.value} isRunning={running.value !== undefined} />
    </form>
  );
}

/** The user's next step, and the outcome. */
function Progress({ events, isRunning }: { readonly events: readonly LoginEvent[]; readonly isRunning: boolean }) {
  return (
    <div role="status">
      {events.map((event, at) => (
        <Step key={at} event={event} isRunning={isRunning} />
      ))}
    </div>
  );
}

function Step({ event, isRunning }: { readonly event: LoginEvent; readonly isRunning: boolean }) {
  if (event.kind === "done") return <p class="good">Signed in.</p>;
  if (event.kind === "failed") return <p class="problem">{event.message}</p>;
  // After the login has ended, its page no longer works.
  if (!isRunning) return null;
  // The URL comes from the authorization server, so it is untrusted.
  const host = URL.canParse(event.url) ? new URL(event.url).host : event.url;
  if (event.kind === "page") {
    return (
      <p>
        <WebLink href={event.url}>Continue at {host}</WebLink>, and come back here.
      </p>
    );
  }
  return (
    <p>
      Open <WebLink href={event.complete ?? event.url}>{event.url}</WebLink> and enter the code{" "}
      <strong class="code">{event.code}</strong>
    </p>
  );
}

interface SchemeFieldsProps {
  readonly scheme: SignInScheme;
  /** Prefix of the field names. */
  readonly prefix: string;
}

function SchemeFields({ scheme, prefix }: SchemeFieldsProps) {
  const { name, kind } = scheme;
  const why = obstacle(scheme);
  return (
    <fieldset>
      <legend dir="auto">
        {name} ({kinds[kind]})
      </legend>
      {why !== undefined && <p>{why}</p>}
      {why === undefined && kind === "oauth2" && <OAuthFields scheme={scheme} prefix={prefix} />}
      {why === undefined && kind !== "oauth2" && (
        <>
          {kind === "basic" && (
            <label>
              User
              <input name={`${prefix}username`} required autocomplete="off" />
            </label>
          )}
          <label>
            {kind === "basic" ? "Password" : kind === "apiKey" ? "API key" : "Token"}
            <input name={`${prefix}secret`} type="password" required autocomplete="off" />
          </label>
        </>
      )}
    </fieldset>
  );
}

const flowNames: Readonly<Record<LoginFlow, string>> = {
  browser: "in a browser on this machine",
  device: "with a code on any device",
  client: "as a program, with its secret",
};

function OAuthFields({ scheme: { flows, scopes }, prefix }: SchemeFieldsProps) {
  const flow = useSignal(flows[0] ?? "browser");
  return (
    <>
      <label>
        How
        <select
          name={`${prefix}flow`}
          value={flow.value}
          onChange={({ currentTarget }) =>
            (flow.value = loginFlows.find((known) => known === currentTarget.value) ?? flow.value)
          }
        >
          {flows.map((known) => (
            <option key={known} value={known}>
              {flowNames[known]}
            </option>
          ))}
        </select>
      </label>
      <label>
        Client ID
        <input name={`${prefix}clientId`} required autocomplete="off" spellcheck={false} />
      </label>
      {flow.value === "client" && <ClientSecret name={`${prefix}secret`} required />}
      <details>
        <summary>Options</summary>
        {flow.value !== "client" && <ClientSecret name={`${prefix}secret`} required={false} />}
        <label>
          Additional scopes
          <input name={`${prefix}scopes`} autocomplete="off" placeholder="offline_access" spellcheck={false} />
        </label>
        <label>
          Issuer
          <input name={`${prefix}issuer`} type="url" autocomplete="off" placeholder="from the card" />
        </label>
      </details>
      {scopes.length > 0 && <p class="quiet">Scopes that the card requires: {scopes.join(" ")}</p>}
    </>
  );
}

function ClientSecret({ name, required }: { readonly name: string; readonly required: boolean }) {
  return (
    <label>
      Client secret{!required && " (optional)"}
      <input name={name} type="password" required={required} autocomplete="off" />
    </label>
  );
}

/** The user's input for each scheme, without empty fields. */
function enteredIn(form: HTMLFormElement, schemes: readonly SignInScheme[]): readonly SchemeLogin[] {
  const fields = [...new FormData(form)];
  return schemes.map(({ name }, at) => {
    const own = fields.flatMap(([field, value]) =>
      field.startsWith(`${at} `) && typeof value === "string" && value.trim() !== ""
        ? [[field.slice(`${at} `.length), value.trim()] as const]
        : [],
    );
    return { ...Object.fromEntries(own), name };
  });
}

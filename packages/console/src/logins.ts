import type { DevicePrompt } from "@parley/a2a/credentials";
import { A2AError, type AgentCard } from "@parley/a2a/internal/model/index";
import type { AgentSignIn, LoginEvent, SchemeLogin } from "./api.ts";

/** Stores the logins of an inspector's user. Codes, tokens and secrets never reach the page, which only shows links. */
export interface InspectorLogins {
  /**
   * How the user signs in to the agent at a URL, and the stored logins. The page receives no other members of these objects.
   * `undefined`: the user has set the credentials for this agent elsewhere.
   */
  of(url: string, card: AgentCard): Promise<Pick<AgentSignIn, "ways" | "logins"> | undefined>;
  /**
   * Logs in, tests the credentials with the agent, and stores them. Nothing is stored if it rejects.
   *
   * @param entered - What the user entered, for all schemes of one requirement of the card.
   */
  logIn(url: string, entered: readonly EnteredScheme[], signal: AbortSignal): Promise<void>;
  /** Deletes the logins for the agent of a URL. */
  logOut(url: string): Promise<void>;
}

/** A scheme with the user's input, and an object that answers the other questions of the login. */
interface EnteredScheme {
  /** Name of the scheme. */
  readonly name: string;
  readonly options: Pick<SchemeLogin, "flow" | "clientId" | "issuer" | "username"> & {
    readonly scope: readonly string[];
    /** Whether the OAuth client has a secret. */
    readonly withSecret: boolean;
  };
  readonly user: LoginUser;
}

/** Answers the questions of a login with the user's input. */
interface LoginUser extends LoginPage {
  /** Returns the entered secret. Rejects if the user entered none, and for any other question. */
  answer(question: string, hidden: boolean): Promise<string>;
  /** The browser runs on the user's machine. */
  readonly isRemote: false;
}

/** Shows the user where to log in. */
export interface LoginPage {
  /** Shows a page of the authorization server, to open in a browser on this machine. */
  openPage(url: string): Promise<void>;
  /** Shows a code to enter on any device. */
  showCode(prompt: DevicePrompt): void;
}

/** Converts the input of a form for a login. Throws if no requirement of the card has exactly these schemes. */
export function enteredBy(
  { ways }: Pick<AgentSignIn, "ways">,
  given: readonly SchemeLogin[],
  page: LoginPage,
): readonly EnteredScheme[] {
  const names = new Set(given.map(({ name }) => name));
  const isWay = ways.some((way) => way.length === given.length && way.every(({ name }) => names.has(name)));
  if (!isWay || names.size !== given.length) {
    const shown = given.map(({ name }) => JSON.stringify(name)).join(" and ");
    throw new A2AError("InvalidParams", `no requirement of the card has exactly the schemes ${shown}; reload the page`);
  }
  return given.map(({ name, scopes = "", secret = "", ...rest }) => ({
    name,
    options: { ...rest, scope: scopes.split(/\s+/).filter((scope) => scope !== ""), withSecret: secret !== "" },
    user: {
      ...page,
      isRemote: false,
      async answer(_question, hidden) {
        if (hidden && secret !== "") return secret;
        const what = hidden ? "secret" : "client ID or user name";
        throw new A2AError("InvalidParams", `scheme ${JSON.stringify(name)} needs a ${what}`);
      },
    },
  }));
}

/** The logins for an agent, with only the members that the page may see. */
export function signInOf({ ways, logins }: Pick<AgentSignIn, "ways" | "logins">, card: AgentCard): AgentSignIn {
  const { securityRequirements: required = [] } = card;
  return {
    ways,
    isRequired: required.length > 0 && required.every(({ schemes = {} }) => Object.keys(schemes).length > 0),
    logins: logins.map(({ scheme, since, secretsIn, account }) => ({
      scheme,
      since,
      secretsIn,
      ...(account !== undefined && { account }),
    })),
  };
}

/** Runs a login and streams its events as lines of JSON. Canceling the stream aborts the login. */
export function loginLines(
  logIn: (page: LoginPage, signal: AbortSignal) => Promise<void>,
  ended: AbortSignal,
): ReadableStream<Uint8Array> {
  const gone = new AbortController();
  const signal = AbortSignal.any([gone.signal, ended]);
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async start(controller) {
      const tell = (event: LoginEvent): void => {
        if (!signal.aborted) controller.enqueue(encoder.encode(`${JSON.stringify(event)}\n`));
      };
      // Not awaited: the caller reads the events while the login runs.
      void logIn(pageOf(tell), signal)
        .then(
          () => tell({ kind: "done" }),
          (thrown: unknown) =>
            tell({ kind: "failed", message: thrown instanceof Error ? thrown.message : String(thrown) }),
        )
        .then(() => !gone.signal.aborted && controller.close());
    },
    cancel: () => gone.abort(),
  });
}

function pageOf(tell: (event: LoginEvent) => void): LoginPage {
  return {
    openPage: async (url) => tell({ kind: "page", url }),
    showCode: ({ verificationUri: url, verificationUriComplete: complete, userCode: code }) =>
      tell({ kind: "code", url, code, ...(complete !== undefined && { complete }) }),
  };
}

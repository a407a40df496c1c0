import type { DevicePrompt } from "@parley/a2a/credentials";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import type { AgentSignIn, LoginEvent, SchemeLogin } from "./api.ts";

/** Stores the logins of the user of an inspector. Codes, tokens and secrets stay with it: a page only has links to open. */
export interface InspectorLogins {
  /** How the user signs in to the agent of a URL, and which logins are stored. */
  of(url: string, card: AgentCard): Promise<AgentSignIn>;
  /**
   * Logs in, tests the credentials with the agent, and stores them. Nothing is stored if it rejects.
   *
   * @param schemes - What the user entered, for all schemes of one requirement of the card.
   */
  logIn(url: string, schemes: readonly SchemeLogin[], page: LoginPage, signal: AbortSignal): Promise<void>;
  /** Deletes the logins for the agent of a URL. */
  logOut(url: string): Promise<void>;
}

/** Shows the user where to log in. */
export interface LoginPage {
  /** A page of the authorization server to open in a browser of this machine. */
  openPage(url: string): void;
  /** A code to enter on any device. */
  showCode(prompt: DevicePrompt): void;
}

/** Runs a login, and tells what happens as lines of JSON. It is aborted when nobody reads them any more. */
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
      // Its lines are read while it runs.
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
    openPage: (url) => tell({ kind: "page", url }),
    showCode: ({ verificationUri: url, verificationUriComplete: complete, userCode: code }) =>
      tell({ kind: "code", url, code, ...(complete !== undefined && { complete }) }),
  };
}

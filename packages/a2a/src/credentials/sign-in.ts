import { silentLogger } from "../base/index.ts";
import { A2AError, type AgentCard } from "../model/index.ts";
import { describeRequirements } from "./choose.ts";
import type { CredentialProvider } from "./port.ts";
import { CredentialSession } from "./session.ts";

/** For `signIn()`. */
export interface SignInOptions {
  /** Ends the login when it is aborted. */
  readonly signal?: AbortSignal;
}

/**
 * Gets the credentials for a card now, without a call: for a login. Tokens are then in the store of their provider.
 *
 * @param card - The card of the agent, such as `client.card`.
 * @param url - The URL of the agent, as it is passed to `connect()`.
 * @returns The names of the schemes that are satisfied. Empty: the card asks for none.
 * @throws A2AError `Unauthenticated` where the credentials satisfy nothing that the card asks for, or where the login fails.
 */
export async function signIn(
  card: AgentCard,
  url: string,
  credentials: readonly CredentialProvider[],
  { signal }: SignInOptions = {},
): Promise<readonly string[]> {
  const session = new CredentialSession(credentials, silentLogger);
  session.use(card, new URL(url), undefined);
  const { schemes } = session;
  if (schemes === undefined)
    throw new A2AError(
      "Unauthenticated",
      `None of the credentials satisfies the card, which asks for ${describeRequirements(card)}`,
    );
  await session.add({ method: "POST", url, headers: {} }, signal);
  return schemes;
}

import type { SignIn as How } from "../../src/api.ts";
import { Credentials } from "../parts/credentials.tsx";
import { signInWith } from "../server.ts";

/** Asks for credentials. The page sends them with every request to this server until the tab is closed. */
export function SignIn({ how }: { readonly how: How }) {
  const { bearer, basic, apiKeys } = how;
  // If no card is public, the schemes are unknown.
  const isUnknown = !bearer && !basic && apiKeys.length === 0;
  return (
    <main class="sign-in">
      <Credentials
        title="Sign in"
        schemes={isUnknown ? { bearer: true, basic: true, apiKeys } : how}
        onSignIn={signInWith}
      />
    </main>
  );
}

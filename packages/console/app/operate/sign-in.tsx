import { Credentials } from "../parts/credentials.tsx";
import { operators, refusedBy, signInAsOperator } from "./api.ts";

const none = { bearer: false, basic: false, apiKeys: [] };

/** Asks for the operator's credentials. They can differ from those for the agents. */
export function OperatorSignIn() {
  return (
    <section class="operator" aria-label="Sign in">
      <Credentials
        title="Sign in as an operator"
        schemes={operators.value ?? none}
        rejected={refusedBy.value}
        onSignIn={signInAsOperator}
      />
    </section>
  );
}

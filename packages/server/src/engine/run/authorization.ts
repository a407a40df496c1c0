import type { Authorizations, AuthorizingTurn } from "../../intask/index.ts";
import type { AuthorizationInit, OpenAuthorization } from "@parley/a2a/internal/protocol/index";
import { agentMistake } from "../shared/mistakes.ts";
import type { Phase } from "./phase.ts";

/** A turn, and the phase that its run is in. */
interface AskingRun extends Omit<AuthorizingTurn, "keep" | "rest"> {
  readonly phase: () => Phase;
}

/** Opens a request for an authorization. Its row is stored with the task, which is made where there is none. */
export async function openAuthorization<Init extends AuthorizationInit>(
  authorizations: Authorizations | undefined,
  init: Init,
  { phase, ...turn }: AskingRun,
): Promise<OpenAuthorization<Init["form"]>> {
  if (authorizations === undefined) throw agentMistake("turn.authorize(): this host cannot serve it");
  return authorizations.open(init, {
    ...turn,
    keep(effects) {
      phase().makeTask();
      return phase().keep(effects);
    },
    rest: (resting) => phase().rest(resting, true),
  });
}

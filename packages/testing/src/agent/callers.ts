import type { Authenticator } from "@parley/a2a/internal/auth/index";
import { anonymous, type Agent, type Principal } from "@parley/a2a/internal/protocol/index";

/** The header that names a caller of a test. The server under test is the only one that knows it. */
export const callerHeader = "x-test-caller";

/** The callers of a test, beside those that the own authenticator of the server finds. */
export class Callers {
  readonly #principals = new Map<string, Principal>();
  readonly #agent: Agent;

  constructor(agent: Agent) {
    this.#agent = agent;
  }

  /** The value of the header for a caller. A name alone stands for a caller who may do everything that the card demands. */
  add(caller: string | Principal, own: Authenticator | undefined): string {
    const principal = typeof caller === "string" ? { subject: caller, schemes: this.#everyScheme(own) } : caller;
    const id = `caller-${this.#principals.size + 1}`;
    this.#principals.set(id, principal);
    return id;
  }

  /** Knows the callers of the test, and asks `own` about all others. */
  authenticator(own: Authenticator | undefined): Authenticator {
    return {
      securitySchemes: { ...this.#agent.securitySchemes, ...own?.securitySchemes },
      securityRequirements: own?.securityRequirements ?? [],
      ...(own?.resource !== undefined && { resource: own.resource }),
      ...(own?.subjectsOf !== undefined && { subjectsOf: own.subjectsOf }),
      ...(own?.challenges !== undefined && { challenges: (...asked) => own.challenges?.(...asked) ?? {} }),
      authenticate: (request, place) => {
        const principal = this.#principals.get(request.header(callerHeader) ?? "");
        return principal ?? (own === undefined ? anonymous : own.authenticate(request, place));
      },
    };
  }

  #everyScheme(own: Authenticator | undefined): Readonly<Record<string, readonly string[]>> {
    const { securityRequirements = own?.securityRequirements ?? [], skills } = this.#agent;
    const all = [...securityRequirements, ...skills.flatMap((skill) => skill.securityRequirements ?? [])];
    const schemes: Record<string, readonly string[]> = {};
    for (const requirement of all) {
      for (const [name, { list = [] }] of Object.entries(requirement.schemes ?? {}))
        schemes[name] = [...new Set([...(schemes[name] ?? []), ...list])];
    }
    return schemes;
  }
}

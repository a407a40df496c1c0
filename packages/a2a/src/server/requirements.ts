import type { Authenticator } from "../auth/port.ts";
import { isObject } from "../model/schema.ts";
import { cannotServe } from "../transport/server/binding.ts";
import type { MountedAgent } from "./serve-agent.ts";

/* What a card demands of callers, as it is written in a program or in a file of JSON. */

/**
 * Refuses a card whose requirements are not those of A2A 1.0, or name a scheme that is never checked: callers would believe that they
 * are checked. The types find most of this; cards of JavaScript and of JSON files have none.
 *
 * @throws A2AError `InvalidParams`.
 */
export function checkRequirements({ card, mount }: MountedAgent, authenticator: Authenticator | undefined): void {
  const checked = authenticator?.securitySchemes ?? {};
  const all = [
    { where: "", written: mount.agent, of: card },
    ...card.skills.map((skill) => ({ where: `skills[${skill.id}].`, written: skill, of: skill })),
  ];
  for (const { where, written, of } of all) {
    if ("security" in written) {
      throw cannotServe(`${where}security`, `is the field of A2A 0.3. In 1.0 it is securityRequirements: ${example}`);
    }
    const field = `${where}securityRequirements`;
    const unknown = schemeNames(field, written.securityRequirements ?? of.securityRequirements).find(
      (name) => !Object.hasOwn(checked, name),
    );
    if (unknown === undefined) continue;
    throw cannotServe(
      field,
      `has the scheme ${JSON.stringify(unknown)}, which the authenticator of this server does not check`,
    );
  }
}

const example = '[{ schemes: { jwt: { list: ["pay"] } } }]';

/** The schemes of requirements. One without `schemes` lets everyone in, so it has to be `{}` or `{ schemes: {} }` and nothing else. */
function schemeNames(field: string, requirements: unknown): readonly string[] {
  if (requirements === undefined) return [];
  if (!Array.isArray(requirements)) throw cannotServe(field, `must be a list, such as ${example}`);
  return requirements.flatMap((requirement: unknown, at) => {
    const { schemes = {}, ...others } = isObject(requirement) ? requirement : { requirement };
    if (Object.keys(others).length > 0 || !isObject(schemes)) {
      throw cannotServe(`${field}[${at}]`, `must have the member schemes and no other, as in ${example}`);
    }
    for (const [name, demanded] of Object.entries(schemes)) {
      const { list = [], ...more } = isObject(demanded) ? demanded : { demanded };
      if (isScopes(list) && Object.keys(more).length === 0) continue;
      throw cannotServe(`${field}[${at}].schemes.${name}`, `must have a list of scopes, as in ${example}`);
    }
    return Object.keys(schemes);
  });
}

function isScopes(list: unknown): boolean {
  return Array.isArray(list) && list.every((scope) => typeof scope === "string");
}

import { data, defineAgent, text, type Agent } from "@parley/node";
import { sentences } from "./words.ts";

export type Language = "en" | "zh";
export type AddressKind = "postal" | "email";

/** What is known of the requested change. */
export interface Change {
  /** The customer's language. */
  language: Language;
  address?: string;
  phone?: string;
}

/** Dependencies of the agent. */
export interface Desk {
  /** The agent's client registration at the customers' OpenID provider. */
  readonly login: { readonly server: string; readonly clientId: string; readonly clientSecret: string };
  /** Which kind of address the records hold. */
  readonly holds: AddressKind;
  /** Reads a message: a model, or the scripted model. `known`: the facts so far. */
  read(message: string, known: Partial<Change>): Promise<Change>;
  /** Changes the record of the token's customer, idempotently. Returns the customer's name. */
  change(accessToken: string, change: Change): Promise<string>;
}

/** Makes the agent that changes the address of a customer. */
export function addressDesk({ login, holds, read, change }: Desk): Agent {
  return defineAgent<{ state: Change }>({
    name: "Address desk",
    description: "Changes the address in your account.",
    version: "1.0.0",
    skills: [
      {
        id: "change",
        name: "Change an address",
        description: "Changes your address",
        tags: ["account"],
        examples: ["Update the user's address to 221B Baker Street", "将用户的地址更新为贝克街221B号"],
      },
    ],
    defaultOutputModes: ["text/plain", "application/json"],
    async *onMessage(turn) {
      const wanted = await read(turn.text, turn.state() ?? {});
      turn.setState(wanted);
      const question = questionAbout(wanted, holds);
      if (question !== undefined) {
        yield turn.inputRequired(question);
        return;
      }
      const say = sentences[wanted.language];
      const reason = say.verify(wanted.address ?? "");
      const tokens = yield* turn.authorize({ form: "oauth", reason, scope: "openid", ...login });
      const customer = await change(tokens.accessToken, wanted);
      yield turn.artifact({ name: "address", parts: [text(say.done(customer, wanted)), data(wanted)] });
    },
  });
}

/** What must be known before the address can be changed. */
function questionAbout({ language, address, phone }: Change, holds: AddressKind): string | undefined {
  const say = sentences[language];
  if (address === undefined) return say.whichAddress;
  if (address.includes("@") !== (holds === "email")) return say.wrongKind(holds);
  return phone === undefined ? say.phone : undefined;
}

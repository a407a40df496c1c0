import { data, defineAgent, text, type Agent } from "@parley/a2a";

/** What a customer wants changed, as far as it is known. */
export interface Change {
  address?: string;
  phone?: string;
}

/** What the agent needs of others. */
export interface Desk {
  /** The client that the agent is at the OpenID provider of the customers. */
  readonly login: { readonly server: string; readonly clientId: string; readonly clientSecret: string };
  /** Reads a message: a model, or the scripted one of `scripted.ts`. `known`: what was read before. */
  read(message: string, known: Change): Promise<Change>;
  /** Changes the record of the customer whose token it is. The same change twice is one. Returns the customer's name. */
  change(accessToken: string, change: Change): Promise<string>;
}

/** Makes the agent that changes the address of a customer. */
export function addressDesk({ login, read, change }: Desk): Agent {
  return defineAgent<{ state: Change }>({
    name: "Address desk",
    description: "Changes the address in your account.",
    version: "1.0.0",
    skills: [{ id: "change", name: "Change an address", description: "Changes your address", tags: ["account"] }],
    defaultOutputModes: ["text/plain", "application/json"],
    async *onMessage(turn) {
      const wanted = await read(turn.text, turn.state() ?? {});
      turn.setState(wanted);
      const question = questionAbout(wanted);
      if (question !== undefined) {
        yield turn.inputRequired(question);
        return;
      }
      const reason = `Change the address in your account to ${wanted.address}`;
      const tokens = yield* turn.authorize({ form: "oauth", reason, scope: "openid", ...login });
      const customer = await change(tokens.accessToken, wanted);
      yield turn.artifact({ name: "address", parts: [text(`${customer} lives at ${wanted.address}.`), data(wanted)] });
    },
  });
}

/** What has to be known before the address can be changed. */
function questionAbout({ address, phone }: Change): string | undefined {
  if (address === undefined) return "What is the new address?";
  if (address.includes("@")) return `${address} is an email address, and I need a postal one. What is it?`;
  if (phone === undefined) return "Your account has no telephone number, and needs one with an address. What is it?";
  return undefined;
}

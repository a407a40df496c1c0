import { toHex } from "../base/bytes.ts";
import { secretDigest } from "../base/sha256.ts";
import { A2AError, invalidParams, type AuthenticationInfo, type TaskPushNotificationConfig } from "../model/index.ts";
import { standardWebhooksScheme } from "../webhooks/index.ts";
import type { TaskReader, WebhookConfigInit, WebhookListener, WebhookSubscription, WebhookTrust } from "./port.ts";

/* Tokens of webhook configs. A receiver passes them to senders, and recognizes by them which listener a delivery is for. */

interface Target {
  readonly listener: WebhookListener;
  readonly client: TaskReader | undefined;
}

/** The recipient of a delivery, by its token. `closed`: a subscription that is over, possibly of an earlier process. */
export type Addressee = { readonly kind: "own" | "none" | "unknown" | "closed" } | SubscribedAddressee;

interface SubscribedAddressee {
  readonly kind: "subscription";
  /** Names the subscription. It is not its token. */
  readonly name: string;
  readonly target: Target;
}

/** The prefix of subscription tokens, also in other processes. */
const subscriptionPrefix = "prlsub_";

const longest = 4096;

/** The tokens of a receiver and of its subscriptions. */
export class Tokens {
  readonly #url: string;
  readonly #accept: readonly WebhookTrust[];
  readonly #token: string | undefined;
  readonly #main: Target | undefined;
  readonly #digest = secretDigest();
  readonly #own: string | undefined;
  readonly #subscriptions = new Map<string, SubscribedAddressee>();

  constructor(url: string, accept: readonly WebhookTrust[], token: string | undefined, main: Target | undefined) {
    if (token !== undefined && !/^[\x21-\x7e]{1,4096}$/.test(token)) {
      throw invalidParams([{ field: "token", description: "must be up to 4096 visible characters of ASCII" }]);
    }
    const open = accept.some((trust) => "tokenOnly" in trust && trust.authentication === undefined);
    if (open && main !== undefined && token === undefined) {
      throw invalidParams([{ field: "token", description: "is required where `accept` has `tokenOnly`" }]);
    }
    this.#url = url;
    this.#accept = accept;
    this.#token = token;
    this.#main = main;
    this.#own = token === undefined ? undefined : this.#digest(token);
  }

  /** The addressee of a token. */
  find(token: string | undefined): Addressee {
    if (token === undefined || token === "") return { kind: "none" };
    if (token.length > longest) return { kind: "unknown" };
    const digest = this.#digest(token);
    if (digest === this.#own) return { kind: "own" };
    return this.#subscriptions.get(digest) ?? { kind: token.startsWith(subscriptionPrefix) ? "closed" : "unknown" };
  }

  /** Whether a challenge may be answered: the sender has a token of this receiver, or needs none. */
  mayAnswer({ kind }: Addressee): boolean {
    return kind === "own" || kind === "subscription" || (this.#token === undefined && kind !== "closed");
  }

  /**
   * The target of a delivery whose sender is verified.
   *
   * @throws A2AError `Unauthenticated` if the delivery needs a token, `TaskNotFound` if there is no listener.
   */
  target(addressee: Addressee, trust: WebhookTrust): Target {
    if (addressee.kind === "subscription") return addressee.target;
    const byAuthorization = "tokenOnly" in trust && trust.authentication !== undefined && addressee.kind === "none";
    if (this.#token !== undefined && addressee.kind !== "own" && !byAuthorization) {
      throw new A2AError("Unauthenticated", "The token of the webhook is not valid");
    }
    if (this.#main === undefined) throw new A2AError("TaskNotFound", "There is no listener for this webhook");
    return this.#main;
  }

  /** Makes a token whose deliveries go to `target`. */
  subscribe(target: Target): WebhookSubscription {
    const token = subscriptionPrefix + randomText();
    const digest = this.#digest(token);
    this.#subscriptions.set(digest, { kind: "subscription", name: randomText(), target });
    return {
      config: (init) => {
        const [first] = this.#accept as readonly [WebhookTrust];
        // The official JavaScript SDK sends no token if it sends an Authorization.
        const trust = "tokenOnly" in first ? ({ tokenOnly: true } as const) : first;
        return configOf(this.#url, trust, token, init);
      },
      close: () => void this.#subscriptions.delete(digest),
    };
  }
}

function randomText(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(24)));
}

/** The webhook config for a sender, so that `trust` accepts its deliveries. */
export function configOf(
  url: string,
  trust: WebhookTrust,
  token: string | undefined,
  { taskId, id }: WebhookConfigInit = {},
): TaskPushNotificationConfig {
  const authentication = authenticationOf(trust);
  return {
    ...(id !== undefined && { id }),
    ...(taskId !== undefined && { taskId }),
    url,
    ...(token !== undefined && { token }),
    ...(authentication !== undefined && { authentication }),
  };
}

function authenticationOf(trust: WebhookTrust): AuthenticationInfo | undefined {
  if ("secret" in trust) return { scheme: standardWebhooksScheme, credentials: trust.secret };
  if ("jwt" in trust) return { scheme: "Bearer" };
  // Servers that support Standard Webhooks `v1a` always sign.
  return "tokenOnly" in trust ? trust.authentication : undefined;
}

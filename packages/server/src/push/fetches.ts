import type { Clock } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import { guardedFetch, type GuardedFetch } from "@parley/a2a/internal/net/index";
import { mutualTlsScheme } from "@parley/a2a/internal/webhooks/index";
import type { PushSettings } from "./settings.ts";

/** Calls the receivers of configs, by the scheme of their authentication. */
export type FetchFor = (scheme: string | undefined) => GuardedFetch;

/** A client certificate is shown to the receivers of configs that ask for it, and to no others. */
export function fetches({ net, dialer, mutualTls }: PushSettings, clock: Clock): FetchFor {
  const plain = guardedFetch(net, dialer, clock);
  const mutual = mutualTls === undefined ? withoutCertificate : guardedFetch(net, mutualTls, clock);
  return (scheme) => (scheme?.toLowerCase() === mutualTlsScheme.toLowerCase() ? mutual : plain);
}

/** A config may have asked for a certificate that the server had before. */
const withoutCertificate: GuardedFetch = () =>
  Promise.reject(new A2AError("InvalidParams", "This server has no client certificate"));

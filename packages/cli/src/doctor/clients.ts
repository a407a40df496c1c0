import type { AgentCard } from "@parley/a2a/internal/model/index";
import { isLoopback } from "@parley/a2a/internal/base/index";
import type { Finding } from "./finding.ts";

/* Clients that refuse cards which the specification allows. */

interface Refusal {
  readonly why: string;
  readonly cure: string;
}

/** Which of these clients refuse the card that was asked for at `asked`, and why. */
export function checkClients(asked: URL, card: AgentCard): readonly Finding[] {
  const refusal = adkForPython(asked, card);
  if (refusal === undefined) return [{ subject: "clients", verdict: "ok", seen: "ADK for Python accepts this card" }];
  const { why, cure } = refusal;
  return [
    { subject: "clients", verdict: "warning", seen: `ADK for Python refuses this card (from 2.13 on): ${why}`, cure },
  ];
}

/** It checks every address of a card, also those that it would not use. */
function adkForPython({ origin, protocol, hostname }: URL, { supportedInterfaces }: AgentCard): Refusal | undefined {
  const rule = "neither https, nor http on a loopback host";
  if (protocol !== "https:" && !isLoopback(hostname)) return { why: `${origin} is ${rule}`, cure: "Serve over https" };
  for (const { protocolBinding, url } of supportedInterfaces) {
    const address = `${protocolBinding} at ${url}`;
    const parsed = /^[a-z][a-z\d+.-]*:\/\//i.test(url) && URL.canParse(url) ? new URL(url) : undefined;
    if (parsed === undefined || (parsed.protocol !== "https:" && !isLoopback(parsed.hostname))) {
      const cure =
        protocolBinding === "GRPC"
          ? "Take gRPC off the card where such clients call: its addresses have no scheme (the option grpc of serve(), --grpc)"
          : "Serve this address over https";
      return { why: `${address} is ${rule}`, cure };
    }
    if (parsed.origin !== origin) {
      const cure = `Serve it at ${origin}, where the card is, or take it off the card`;
      return { why: `${address} has another origin than the card, ${origin}`, cure };
    }
  }
  return undefined;
}

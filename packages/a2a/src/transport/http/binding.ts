import type { AgentCard, AgentInterface } from "../../model/index.ts";
import type { AgentService } from "../../protocol/index.ts";
import type { ClientHost } from "./request.ts";

/** A binding as a client sees it: what it is called on a card, and how an interface of it is talked to. */
export interface ClientBinding {
  /** As a card's `protocolBinding` names it (A2A 1.0 §4.4.6). */
  readonly name: string;
  /** Versions that it speaks, `Major.Minor`, the preferred first. */
  readonly versions: readonly string[];
  /** Why it cannot use the address of an interface. Default: any but an absolute http(s) URL. */
  unusable?(url: string): string | undefined;
  /** The origin that is called for the address of an interface, where the address is no http(s) URL. */
  origin?(url: string, card: AgentCard): string | undefined;
  /** Opens no connection: that waits for the first call. `version` is one of `versions`, `card` the one of the interface. */
  open(target: AgentInterface, version: string, host: ClientHost, card: AgentCard): AgentService;
}

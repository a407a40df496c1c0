import type { Bytes } from "@parley/a2a/internal/base/index";
import type { Dialer, NetPolicy } from "@parley/a2a/internal/net/index";
import type { PushOptions } from "./port.ts";

/** The options of webhooks with their defaults, as the rooms of a server read them. `server/features.ts` makes them. */
export interface PushSettings extends Required<Omit<PushOptions, "keys" | "net" | "dialer" | "mutualTls">> {
  /** 32 bytes each. The first one is used, the others open what they sealed. */
  readonly keys: readonly [Bytes, ...Bytes[]];
  /** The public URL of the server, which JWTs name as their issuer. */
  readonly issuer: string;
  /** Which addresses may be called, with the limits of a call. */
  readonly net: NetPolicy;
  /** Pins addresses. Absent: the runtime's `fetch` resolves the name again. */
  readonly dialer: Dialer | undefined;
  /** The same with a client certificate, for the configs that ask for it. Absent: none may. */
  readonly mutualTls: Dialer | undefined;
}

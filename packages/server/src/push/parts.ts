import { pushKeyring } from "./keys.ts";
import { createOutbox, type OutboxParts } from "./outbox.ts";
import type { Outbox, OutboxHost } from "./port.ts";
import { createSealer } from "./seal.ts";
import type { PushSettings } from "./settings.ts";
import { createSigner } from "./signer.ts";

/** The outbox of a server, with what opens the secrets of its configs and signs its requests. */
export function openOutbox(settings: PushSettings, codecs: OutboxParts["codecs"], host: OutboxHost): Outbox {
  const keyring = pushKeyring(settings.keys);
  const { open } = createSealer(keyring);
  return createOutbox(settings, { codecs, open, signer: createSigner(keyring, settings.issuer) })(host);
}

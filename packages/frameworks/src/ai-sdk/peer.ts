import type { SupportedVersions } from "../shared/peer.ts";

/** Versions of the AI SDK that this adapter supports. */
export const supported: SupportedVersions = { name: "ai", min: 6, below: 8 };

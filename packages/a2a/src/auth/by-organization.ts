import type { Principal } from "../protocol/index.ts";

/**
 * The owner of what a caller creates, for the option `ownerOf`: its organization. Everybody of an organization then sees its
 * tasks, conversations and webhooks, and nobody else does. A caller without an organization shares them with nobody.
 *
 * @example
 * ```ts
 * const authenticator = bearer({ "a-long-random-token": { subject: "ada", organization: "acme" } });
 * await serve(agent, { authenticator, ownerOf: byOrganization });
 * ```
 */
export function byOrganization({ organization, subject }: Principal): string {
  // The default gives lists of two, so a caller without an organization keeps its tasks when this option is set.
  return JSON.stringify(organization === undefined ? [null, subject] : [organization]);
}

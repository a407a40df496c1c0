/**
 * The credentials of a client, chosen by the security schemes of a card.
 * @packageDocumentation
 */

export * from "./credentials/index.ts";

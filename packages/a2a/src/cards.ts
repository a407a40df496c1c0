/**
 * Cards that can be trusted: signing them, verifying them, and finding what is wrong with them (A2A 1.0 §8.4).
 * @packageDocumentation
 */

export * from "./cards/index.ts";

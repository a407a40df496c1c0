/** Suites and doubles for those who build on the ports. */
export * from "./store-contract.ts";

/**
 * Contract suites and test doubles.
 * @packageDocumentation
 */
export * from "./binding-contract.ts";
export * from "./blob-contract.ts";
export * from "./extension-contract.ts";
export * from "./host-contract.ts";
export * from "./observer-contract.ts";
export type { Expectation, Runner } from "./runner.ts";
export * from "./store-contract.ts";
export * from "./wakeup-contract.ts";
export * from "./watch-contract.ts";
export { fakeClock, type FakeClock, type TestClock } from "./fake-clock.ts";
export { callContext, inProcess, type InProcess, type InProcessOptions } from "./in-process.ts";
export { testAgent, type AgentUnderTest, type TestAgent, type TestAgentOptions, type LogLine } from "./test-agent.ts";

/** An agent that is never called, not yet defined. */
export const agent = {
  name: "Idle",
  description: "Is there",
  version: "1.0.0",
  skills: [],
  async *onMessage() {},
};

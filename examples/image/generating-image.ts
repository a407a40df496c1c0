import { defineExtension } from "@parley/a2a/extensions";

/**
 * The sub-state of the guide: a task is generating an image when it is WORKING, and the metadata of its status message has
 * `"generating-image": true`.
 */
export const generatingImage = defineExtension({
  uri: "https://example.com/ext/generating-image/v1",
  description: "Says when the agent is waiting for the image",
  kind: "data",
  subStates: { "generating-image": { state: "TASK_STATE_WORKING" } },
});

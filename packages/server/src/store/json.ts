import { storedJson, type StoredJson } from "@parley/a2a/internal/base/json";
import type { JsonValue, Message, TaskArtifactUpdateEvent } from "@parley/a2a/internal/model/index";

export const messageJson: StoredJson<Message> = storedJson();
/** Reads the JSON of records of kind `artifactUpdate`. */
export const updateJson: StoredJson<TaskArtifactUpdateEvent> = storedJson();
export const valueJson: StoredJson<JsonValue> = storedJson();

import type { Seal } from "../seal/index.ts";
import type { TaskKey } from "../store/index.ts";
import type { InTaskHost, InTaskSettings } from "./port.ts";

/** What the files of this room share. */
export interface InTaskParts {
  readonly settings: InTaskSettings;
  readonly host: InTaskHost;
  readonly seal: Seal;
  readonly waits: {
    on(task: TaskKey, run: () => void): () => void;
    changed(task: TaskKey): void;
  };
}

import { Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import { AgentEvent, type AgentExecutor, type ExecutionEventBus, type RequestContext } from "@a2a-js/sdk/server";
import { startOfficial, type OfficialServer } from "../../../conform/test/official.ts";

class Echo implements AgentExecutor {
  readonly #hanging = new Map<string, () => void>();

  async execute(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { taskId, contextId, userMessage } = context;
    const ids = { taskId, contextId };
    const content = userMessage.parts[0]?.content;
    const text = content?.$case === "text" ? content.value : "";
    const status = (state: string, words?: string): void => {
      const message = words && { ...ids, messageId: words, role: "ROLE_AGENT", parts: [{ text: words }] };
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ ...ids, status: { state, message } })));
    };
    if (text === "reply") {
      const reply = { messageId: "reply", role: "ROLE_AGENT", contextId, parts: [{ text: "Just a word." }] };
      bus.publish(AgentEvent.message(Message.fromJSON(reply)));
      bus.finished();
      return;
    }
    const task = { id: taskId, contextId, status: { state: "TASK_STATE_SUBMITTED" } };
    bus.publish(AgentEvent.task(context.task ?? Task.fromJSON(task)));
    status("TASK_STATE_WORKING", "On it");
    if (text === "ask") {
      status("TASK_STATE_INPUT_REQUIRED", "Which?");
    } else if (text === "hang") {
      await new Promise<void>((resolve) => this.#hanging.set(taskId, resolve));
      status("TASK_STATE_CANCELED");
    } else {
      for (const [i, word] of ["You ", `said ${text}`].entries()) {
        const artifact = { artifactId: "echo", name: "echo", parts: [{ text: word }] };
        bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ ...ids, artifact, append: i > 0 })));
      }
      status("TASK_STATE_COMPLETED");
    }
    bus.finished();
  }

  cancelTask = async (taskId: string): Promise<void> => {
    this.#hanging.get(taskId)?.();
  };
}

/** An agent on the official SDK that does what its message says. */
export const startOfficialEcho = (): Promise<OfficialServer> => startOfficial(new Echo());

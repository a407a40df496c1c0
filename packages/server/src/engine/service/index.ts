export { checkedAgent, type CheckedAgent } from "./checks.ts";
export { Sends } from "./send-message.ts";
export { createService } from "./service.ts";
export { TaskIndex } from "./search.ts";

export { agentPage, listPage } from "./page.ts";
export { frame, pageHeaders } from "./frame.ts";

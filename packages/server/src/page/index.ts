export { agentPage, listPage } from "./page.ts";
export { pageHeaders } from "./frame.ts";

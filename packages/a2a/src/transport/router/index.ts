/** Where requests go, and what two bindings cannot share. */

export { admission, hostsOf } from "./admission.ts";
export type { InterfacePaths, ServiceMount } from "./mounts.ts";
export { createRouter, type Found, type RouterOptions } from "./router.ts";

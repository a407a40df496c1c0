import type { ClientBinding } from "@parley/a2a";
import { webSocketBinding } from "./client.ts";

const binding: ClientBinding = webSocketBinding();

/** For `parley conform --client`, which takes a module by its default export. */
export default binding;

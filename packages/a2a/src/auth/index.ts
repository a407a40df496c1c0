export type { Authenticator } from "./port.ts";
export { bearer, type BearerOptions, type VerifyToken } from "./bearer.ts";

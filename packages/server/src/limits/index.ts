export type { Rate, RateAnswer, RateLimiter, RateLimits } from "./port.ts";
export { limitRequests, type Authenticate, type LimitsHost } from "./requests.ts";
export { OpenStreams } from "./requests.ts";

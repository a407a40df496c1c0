export type { RateAnswer, RateLimiter } from "./port.ts";

import { testKills } from "./kills.ts";

testKills("openai-agents-server", { alone: 5, hands: 6, asks: 5 });

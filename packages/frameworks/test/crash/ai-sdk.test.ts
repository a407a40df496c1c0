import { testKills } from "./kills.ts";

testKills("ai-sdk-server", { "ai-6": 5, "ai-7": 5 }, ["ai-6", "ai-7"]);

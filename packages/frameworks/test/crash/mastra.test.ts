import { testKills } from "./kills.ts";

testKills("mastra-server", { approved: 5, suspended: 5 });

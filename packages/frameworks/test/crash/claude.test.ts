import { testKills } from "./kills.ts";

testKills("claude-server", { claude: 4 });

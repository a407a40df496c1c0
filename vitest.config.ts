import { defineConfig } from "vitest/config";

// Tests run the sources: the packages' exports carry a condition of ours for that, so no build comes first.
export default defineConfig({
  resolve: { conditions: ["@parley/source"] },
  ssr: { resolve: { conditions: ["@parley/source"] } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts", "test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});

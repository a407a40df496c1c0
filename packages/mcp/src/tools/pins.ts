import type { ToolPins } from "./port.ts";

/** Keeps pins in memory, for tests and single processes. The pins are lost on exit; use a persistent store to detect changes across restarts. */
export function memoryPins(): ToolPins & { approve(server: string, tool: string, digest: string): void } {
  const pins = new Map<string, string>();
  const keyOf = (server: string, tool: string): string => JSON.stringify([server, tool]);
  return {
    pin(server, tool, digest) {
      const key = keyOf(server, tool);
      const pinned = pins.get(key) ?? digest;
      pins.set(key, pinned);
      return pinned;
    },
    approve: (server, tool, digest) => void pins.set(keyOf(server, tool), digest),
  };
}

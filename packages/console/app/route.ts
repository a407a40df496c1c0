import { signal } from "@preact/signals";

/** The screens. */
export const screens = ["talk", "tasks", "inbox", "timeline", "wire", "card", "operate"] as const;

export type Screen = (typeof screens)[number];

/** What the page shows, as the fragment of its address says: `#/talk/a1`. */
export interface Route {
  readonly screen: Screen;
  /** `AgentEntry.id`. Absent: none is chosen. */
  readonly agent?: string;
  /** What is chosen on the screen, such as the number of an exchange. */
  readonly item?: string;
}

function routeOf(fragment: string): Route {
  const [, screen, agent, item] = fragment.split("/").map((part) => decodeURIComponent(part));
  return {
    screen: screens.find((name) => name === screen) ?? "talk",
    ...(agent !== undefined && agent !== "" && { agent }),
    ...(item !== undefined && { item }),
  };
}

export const route = signal(routeOf(location.hash));

addEventListener("hashchange", () => (route.value = routeOf(location.hash)));

/** The address of a route, for links. */
export function linkTo({ screen, agent = "", item }: Route): string {
  return `#/${[screen, agent, ...(item === undefined ? [] : [item])].map(encodeURIComponent).join("/")}`;
}

export function go(to: Route): void {
  location.hash = linkTo(to);
}

import { signal } from "@preact/signals";
import { decoded, encoded } from "./fragment.ts";

/** The screens of the navigation. */
export const screens = ["talk", "tasks", "inbox", "timeline", "wire", "card", "operate"] as const;

export type Screen = (typeof screens)[number] | "sign-in";

/** The route in the URL fragment, such as `#/talk/a1?beside=a2`. */
export interface Route {
  readonly screen: Screen;
  /** `AgentEntry.id`. Absent: no agent is selected. */
  readonly agent?: string;
  /** The selected item of the screen, such as the number of an exchange. */
  readonly item?: string;
  /** A second agent, shown next to the first one. */
  readonly beside?: string;
}

function routeOf(fragment: string): Route {
  const [path = "", query] = fragment.split("?");
  const [, screen, agent, item] = path.split("/").map(decoded);
  const beside = new URLSearchParams(query).get("beside") ?? "";
  return {
    screen: [...screens, "sign-in" as const].find((name) => name === screen) ?? "talk",
    ...(agent !== undefined && agent !== "" && { agent }),
    ...(item !== undefined && { item }),
    ...(beside !== "" && { beside }),
  };
}

export const route = signal(routeOf(location.hash));

addEventListener("hashchange", () => (route.value = routeOf(location.hash)));

/** The address of a route, for links. */
export function linkTo({ screen, agent = "", item, beside }: Route): string {
  const path = [screen, agent, ...(item === undefined ? [] : [item])].map(encoded).join("/");
  return `#/${path}${beside === undefined ? "" : `?beside=${encoded(beside)}`}`;
}

export function go(to: Route): void {
  location.hash = linkTo(to);
}

import * as z from "zod";

/** A point on the earth. */
export const Point = z.object({ lat: z.number().min(-90).max(90), lng: z.number().min(-180).max(180) });
export type Point = z.infer<typeof Point>;

/** Preferences of a driver. */
export const Preference = z.enum(["avoid_tolls", "avoid_ferries", "prefer_highways"]);
export type Preference = z.infer<typeof Preference>;

/** A place with its name. */
export interface Place extends Point {
  readonly name: string;
}

/** A road between two places, in both directions. */
export interface Road {
  readonly ends: readonly [Place, Place];
  readonly name: string;
  /** Without traffic. */
  readonly minutes: number;
  readonly has: readonly ("toll" | "ferry" | "highway")[];
}

/** How many times longer a road takes at this moment; `Infinity`: it is closed. `usualTraffic` stands in for a traffic service. */
export type Traffic = (road: Road) => Promise<number>;

const named = (name: string, lat: number, lng: number): Place => ({ name, lat, lng });
const office = named("1600 Amphitheatre Parkway, Mountain View, CA", 37.422, -122.084);
const paloAlto = named("Palo Alto", 37.4419, -122.143);
const sanMateo = named("San Mateo", 37.563, -122.3255);
const airport = named("San Francisco International Airport", 37.6213, -122.379);
const city = named("San Francisco", 37.7749, -122.4194);
const fremont = named("Fremont", 37.5485, -121.9886);
const oakland = named("Oakland", 37.8044, -122.2712);

/** The places that roads lead to. */
export const places: readonly Place[] = [office, paloAlto, sanMateo, airport, city, fremont, oakland];

const roads: readonly Road[] = [
  { ends: [office, paloAlto], name: "US 101 to Palo Alto", minutes: 8, has: ["highway"] },
  { ends: [office, sanMateo], name: "US 101 Express Lanes", minutes: 21, has: ["highway", "toll"] },
  { ends: [paloAlto, sanMateo], name: "US 101 to San Mateo", minutes: 16, has: ["highway"] },
  { ends: [paloAlto, sanMateo], name: "El Camino Real", minutes: 24, has: [] },
  { ends: [sanMateo, airport], name: "US 101 to the airport", minutes: 8, has: ["highway"] },
  { ends: [sanMateo, city], name: "Skyline Boulevard", minutes: 20, has: [] },
  { ends: [airport, city], name: "US 101 to San Francisco", minutes: 16, has: ["highway"] },
  { ends: [office, fremont], name: "Dumbarton Bridge", minutes: 22, has: ["toll"] },
  { ends: [fremont, oakland], name: "Interstate 880", minutes: 30, has: ["highway"] },
  { ends: [oakland, city], name: "Bay Bridge", minutes: 14, has: ["highway", "toll"] },
  { ends: [oakland, city], name: "Oakland Ferry", minutes: 25, has: ["ferry"] },
];

/** In place of a service: US 101 is slow, and Skyline Boulevard is closed. */
export const usualTraffic: Traffic = async ({ name }) =>
  name === "Skyline Boulevard" ? Infinity : name.startsWith("US 101 to") ? 1.6 : 1.1;

/** The place of a name, or the one nearest to a point; `undefined` for an unknown name. */
export function placeOf(wanted: string | Point): Place | undefined {
  if (typeof wanted === "string") return places.find(({ name }) => name.toLowerCase() === wanted.trim().toLowerCase());
  const distance = ({ lat, lng }: Point) => Math.hypot(lat - wanted.lat, (lng - wanted.lng) * 0.79);
  return places.toSorted((one, other) => distance(one) - distance(other))[0];
}

/** A way along several places. */
export interface Route {
  /** The requested places, in order. */
  readonly stops: readonly Place[];
  readonly preferences: readonly Preference[];
  /** All places on the way, the stops among them. */
  readonly places: readonly Place[];
  readonly roads: readonly string[];
  /** With traffic. */
  readonly minutes: number;
}

/** The fastest way along these places, by Dijkstra's algorithm; `undefined` if none matches. */
export async function routeAlong(
  stops: readonly Place[],
  wishes: readonly Preference[],
  traffic: Traffic,
): Promise<Route | undefined> {
  const costs = await Promise.all(roads.map(async (road) => road.minutes * (await traffic(road))));
  const open = roads.flatMap((road, at) => {
    if (road.has.includes("toll") && wishes.includes("avoid_tolls")) return [];
    if (road.has.includes("ferry") && wishes.includes("avoid_ferries")) return [];
    const minutes = costs[at] ?? Infinity;
    const dislike = wishes.includes("prefer_highways") && !road.has.includes("highway") ? 2 : 1;
    return minutes === Infinity ? [] : [{ road, minutes, cost: minutes * dislike }];
  });
  const whole: Route & { places: Place[]; roads: string[]; minutes: number } = {
    stops,
    preferences: wishes,
    places: stops.slice(0, 1),
    roads: [],
    minutes: 0,
  };
  for (const [at, stop] of stops.slice(1).entries()) {
    const leg = fastest(stops[at] ?? stop, stop, open);
    if (leg === undefined) return undefined;
    whole.places.push(...leg.places.slice(1));
    whole.roads.push(...leg.roads);
    whole.minutes += leg.minutes;
  }
  return { ...whole, minutes: Math.round(whole.minutes) };
}

interface Way extends Pick<Route, "places" | "roads" | "minutes"> {
  readonly cost: number;
}

function fastest(
  from: Place,
  to: Place,
  open: readonly { readonly road: Road; readonly minutes: number; readonly cost: number }[],
): Way | undefined {
  const known = new Map<Place, Way>();
  const ways: Way[] = [{ places: [from], roads: [], minutes: 0, cost: 0 }];
  for (;;) {
    const way = ways.sort((one, other) => other.cost - one.cost).pop();
    const here = way?.places.at(-1);
    if (way === undefined || here === undefined || here === to) return way;
    if (known.has(here)) continue;
    known.set(here, way);
    for (const { road, minutes, cost } of open) {
      const [a, b] = road.ends;
      const next = a === here ? b : b === here ? a : undefined;
      if (next === undefined) continue;
      const roadsThere = [...way.roads, road.name];
      const there = { minutes: way.minutes + minutes, cost: way.cost + cost };
      ways.push({ places: [...way.places, next], roads: roadsThere, ...there });
    }
  }
}

import { data, defineAgent, file, type Agent, type Part, type Turn } from "@parley/node";
import * as z from "zod";
import { card } from "./card.ts";
import { geoJson, html, picture, type Drawing } from "./draw.ts";
import { placeOf, places, Point, Preference, routeAlong, type Traffic } from "./roads.ts";
import { within } from "./shops.ts";

/** No control characters and no halves of characters: it becomes part of a document. */
const Name = z
  .string()
  .max(200)
  .regex(/^[^\p{Cc}\p{Cs}\p{Cn}]*$/u);
const Place = z.union([z.string().max(200), Point]);

/** Input of the route optimizer. */
export const RouteRequest = z.object({
  origin: Place,
  destination: Place,
  via: z.array(Place).max(20).optional(),
  preferences: z.array(Preference).max(10).optional(),
});
export type RouteRequest = z.infer<typeof RouteRequest>;

const Position = z.tuple([z.number().min(-180).max(180), z.number().min(-90).max(90)]);
const Line = z.array(Position).min(2).max(500);

/** A layer over a map: GeoJSON (RFC 7946), whose positions begin with the longitude. */
const Layer = z.object({
  name: Name,
  color: z
    .string()
    .regex(/^#[0-9a-f]{6}$/i)
    .optional(),
  features: z
    .array(
      z.discriminatedUnion("type", [
        z.object({ type: z.literal("Point"), coordinates: Position }),
        z.object({ type: z.literal("LineString"), coordinates: Line }),
        z.object({ type: z.literal("Polygon"), coordinates: z.array(Line).min(1).max(10) }),
      ]),
    )
    .min(1)
    .max(100),
});
export type Layer = z.infer<typeof Layer>;

/** Input of the map generator. */
const MapRequest = z.object({
  points: z
    .array(Point.extend({ name: Name }))
    .min(1)
    .max(500),
  route: RouteRequest.optional(),
  layers: z.array(Layer).max(10).optional(),
  style: z.object({ color: z.string().regex(/^#[0-9a-f]{6}$/i) }).optional(),
});

type MapRequest = z.infer<typeof MapRequest>;

/** A map requested in words: of the route that was planned before, or of places near the caller. */
export type MapWish =
  | { readonly map: "trip" }
  | { readonly map: "nearby"; readonly what: "coffee shop"; readonly miles: number };

const [optimizer, generator] = card.skills;

/** Reads a message in words: a model, or the scripted one of `scripted.ts`. */
export type Read = (message: string) => Promise<RouteRequest | MapWish | undefined>;

/** Makes the route planner. */
export function routePlanner(read: Read, traffic: Traffic): Agent {
  return defineAgent<{ state: MapWish }>({
    ...card,
    async *onMessage(turn) {
      const said = turn.text === "" ? undefined : await read(turn.text);
      const wish = turn.state() ?? (said !== undefined && "map" in said ? said : undefined);
      const route = said === undefined || "map" in said ? undefined : said;
      const words = wish === undefined ? route : await mapOf(turn, wish, route);
      if (wish !== undefined) turn.setState(wish);
      if (wish !== undefined && words === undefined) {
        yield turn.inputRequired(questions[wish.map]);
        return;
      }
      const request =
        words ?? (await turn.data(z.union([RouteRequest, MapRequest]), { ask: `Try: ${optimizer.examples[0]}` }));
      const map = "points" in request ? request : undefined;
      const skill = map === undefined ? optimizer : generator;
      const accepted = skill.outputModes.filter((mode) => accepts(turn.acceptedOutputModes, mode));
      if (accepted.length === 0) {
        yield turn.rejected(`The answer can be ${skill.outputModes.join(", ")}, and you accept none of it.`);
        return;
      }
      yield turn.working(map === undefined ? "Looking at the traffic" : "Drawing the map");
      const wanted = "points" in request ? request.route : request;
      const stops = wanted === undefined ? [] : [wanted.origin, ...(wanted.via ?? []), wanted.destination];
      const found = stops.map(placeOf).filter((place) => place !== undefined);
      if (found.length < stops.length) {
        yield turn.inputRequired(`I know only ${places.map(({ name }) => name).join("; ")}. Please send it again.`);
        return;
      }
      const planned = wanted && (await routeAlong(found, wanted.preferences ?? [], traffic));
      if (wanted !== undefined && planned === undefined) {
        yield turn.failed("No road leads there as you want it.");
        return;
      }
      const drawing = {
        name: map === undefined ? "route" : "map",
        points: map?.points ?? [],
        layers: map?.layers ?? [],
        route: planned,
        ...map?.style,
      };
      // One image is enough: callers who do not accept PNG get a JPEG.
      const modes = accepted.filter((mode) => mode !== "image/jpeg" || !accepted.includes("image/png"));
      yield turn.artifact({ name: drawing.name, parts: modes.map((mode) => partOf(mode, drawing)) });
    },
  });
}

const questions = {
  trip: "Which trip? Send its stops: from 'A' to 'B', or as data.",
  nearby: "Where are you? Send your location as latitude and longitude, or the name of a place.",
} as const;

/** Data that may accompany a message. */
const Location = z.object({ location: Point });

/** The requested map; `undefined` while the stops or the caller's location are unknown. */
async function mapOf(
  { context, message, text }: Turn,
  wish: MapWish,
  route: RouteRequest | undefined,
): Promise<MapRequest | undefined> {
  const sent = message.parts.map((part) => part.data);
  if (wish.map === "trip") {
    const given = route ?? sent.map((each) => RouteRequest.safeParse(each).data).find((each) => each !== undefined);
    if (given !== undefined) return tripAlong([given.origin, ...(given.via ?? []), given.destination], given);
    // The latest route of this conversation: its artifact lists the stops.
    const history = await context.history({ limit: 1000 });
    const routes = history.filter(({ artifactId, name }) => artifactId !== undefined && name === "route");
    const plan = routes.at(-1)?.parts.map((part) => Planned.safeParse(part.data).data);
    const latest = plan?.find((each) => each !== undefined);
    return latest && tripAlong(latest.stops, latest);
  }
  const [, lat, lng] = /(?<![\d.])(-?\d{1,3}(?:\.\d{1,12})?)[,; ]{1,3}(-?\d{1,3}(?:\.\d{1,12})?)/.exec(text) ?? [];
  const here =
    sent.map((each) => Location.safeParse(each).data?.location ?? Point.safeParse(each).data).find((each) => each) ??
    Point.safeParse({ lat: Number(lat), lng: Number(lng) }).data ??
    placeOf(text);
  if (here === undefined) return undefined;
  const { lat: north, lng: east } = here;
  return { points: [{ name: "You are here", lat: north, lng: east }, ...within(wish.what, wish.miles, here)] };
}

/** The plan of a route, in the data of its artifact. */
const Planned = z.object({
  stops: z.array(Point.extend({ name: Name })).min(2),
  preferences: z.array(Preference).optional(),
});

/** A map with every stop of a trip as a point, and the route between them. */
function tripAlong(stops: readonly z.infer<typeof Place>[], { preferences }: Pick<RouteRequest, "preferences">) {
  const points = stops.map(placeOf).filter((place) => place !== undefined);
  const [origin = "", ...rest] = stops;
  const [destination = "", ...via] = rest.toReversed();
  return { points, route: { origin, via: via.toReversed(), destination, ...(preferences && { preferences }) } };
}

/** Whether a caller accepts a media type. An empty list accepts everything (A2A 1.0 §3.2.2). */
function accepts(accepted: readonly string[], mode: string): boolean {
  const all = ["*/*", "*", mode, `${mode.split("/")[0]}/*`];
  return accepted.length === 0 || accepted.some((each) => all.includes(each.toLowerCase()));
}

type Mode = (typeof optimizer | typeof generator)["outputModes"][number];

/** The same answer as data, or as a file. */
function partOf(mode: Mode, drawing: Drawing): Part {
  const { name, points, layers, route } = drawing;
  switch (mode) {
    case "application/json":
      return data(
        { ...(points.length > 0 && { points }), ...(layers.length > 0 && { layers }), ...route },
        { mediaType: mode },
      );
    case "application/vnd.geo+json":
      return data(geoJson(drawing), { mediaType: mode });
    case "text/html":
      return file(new TextEncoder().encode(html(drawing)), { mediaType: mode, filename: `${name}.html` });
    case "image/png":
      return file(picture(drawing, "png"), { mediaType: mode, filename: `${name}.png` });
    case "image/jpeg":
      return file(picture(drawing, "jpeg"), { mediaType: mode, filename: `${name}.jpg` });
  }
}

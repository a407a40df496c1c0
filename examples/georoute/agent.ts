import { data, defineAgent, file, type Agent, type Part } from "@parley/a2a";
import * as z from "zod";
import { card } from "./card.ts";
import { geoJson, html, picture, type Drawing } from "./draw.ts";
import { placeOf, places, Point, Preference, routeAlong, type Traffic } from "./roads.ts";

/** No control characters and no halves of characters: it goes into a document. */
const Name = z
  .string()
  .max(200)
  .regex(/^[^\p{Cc}\p{Cs}\p{Cn}]*$/u);
const Place = z.union([z.string().max(200), Point]);

/** What the route optimizer takes. */
export const RouteRequest = z.object({
  origin: Place,
  destination: Place,
  via: z.array(Place).max(20).optional(),
  preferences: z.array(Preference).max(10).optional(),
});
export type RouteRequest = z.infer<typeof RouteRequest>;

const Position = z.tuple([z.number().min(-180).max(180), z.number().min(-90).max(90)]);
const Line = z.array(Position).min(2).max(500);

/** What is laid over a map: GeoJSON (RFC 7946), where positions begin with the longitude. */
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

/** What the map generator takes. */
const MapRequest = z.object({
  points: z
    .array(Point.extend({ name: Name }))
    .min(1)
    .max(500),
  route: RouteRequest.optional(),
  layers: z.array(Layer).max(10).optional(),
  style: z.object({ color: z.string().regex(/^#[0-9a-f]{6}$/i) }).optional(),
});

const [optimizer, generator] = card.skills;

/** Reads a message in words: a model, or the scripted one of `scripted.ts`. */
export type Read = (message: string) => Promise<RouteRequest | undefined>;

/** Makes the route planner. */
export function routePlanner(read: Read, traffic: Traffic): Agent {
  return defineAgent({
    ...card,
    async *onMessage(turn) {
      const words = turn.message.parts.every((part) => part.text !== undefined) ? await read(turn.text) : undefined;
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
      const route = wanted && (await routeAlong(found, wanted.preferences ?? [], traffic));
      if (wanted !== undefined && route === undefined) {
        yield turn.failed("No road leads there as you want it.");
        return;
      }
      const drawing = {
        name: map === undefined ? "route" : "map",
        points: map?.points ?? [],
        layers: map?.layers ?? [],
        route,
        ...map?.style,
      };
      // One image is enough: a JPEG is for those who do not accept a PNG.
      const modes = accepted.filter((mode) => mode !== "image/jpeg" || !accepted.includes("image/png"));
      yield turn.artifact({ name: drawing.name, parts: modes.map((mode) => partOf(mode, drawing)) });
    },
  });
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

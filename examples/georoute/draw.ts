import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { initWasm, Resvg } from "@resvg/resvg-wasm";
import { encode } from "jpeg-js";
import type { Layer } from "./agent.ts";
import type { Place, Point, Route } from "./roads.ts";

/** What is drawn. */
export interface Drawing {
  readonly name: string;
  readonly points: readonly Place[];
  readonly route: Route | undefined;
  /** Layers over the map. */
  readonly layers: readonly Layer[];
  /** Color of points and routes, such as `#cc0000`. */
  readonly color?: string;
}

const [width, height, margin] = [480, 360, 36];

/**
 * The drawing as GeoJSON (RFC 7946): a line for the route, a point for each place, and the features of the layers. Positions begin with the
 * longitude.
 */
export function geoJson({ points, route, layers }: Drawing) {
  const position = ({ lat, lng }: Place) => [lng, lat];
  const line = route && {
    type: "Feature",
    properties: { roads: route.roads, minutes: route.minutes },
    geometry: { type: "LineString", coordinates: route.places.map(position) },
  };
  const marks = [...points, ...(route?.places ?? [])].map((place) => ({
    type: "Feature",
    properties: { name: place.name },
    geometry: { type: "Point", coordinates: position(place) },
  }));
  const laid = layers.flatMap(({ name, features }) =>
    features.map((geometry) => ({ type: "Feature", properties: { layer: name }, geometry })),
  );
  return { type: "FeatureCollection", features: [...(line === undefined ? [] : [line]), ...marks, ...laid] };
}

/** The names are untrusted. */
const escape = (text: string) => text.replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);

type Feature = Layer["features"][number];

/** The lines of a feature: for a polygon, its border and the borders of its holes; for a point, one position. */
function linesOf({ type, coordinates }: Feature): readonly (readonly Point[])[] {
  const lines = type === "Point" ? [[coordinates]] : type === "LineString" ? [coordinates] : coordinates;
  return lines.map((line) => line.map(([lng, lat]) => ({ lat, lng })));
}

function svg({ points, route, layers, color = "#1565c0" }: Drawing): string {
  const all = [...points, ...(route?.places ?? [])];
  const every = [...all, ...layers.flatMap(({ features }) => features.flatMap(linesOf).flat())];
  const least = (of: (point: Point) => number) => every.reduce((low, point) => Math.min(low, of(point)), Infinity);
  const [west, south] = [least(({ lng }) => lng), least(({ lat }) => lat)];
  const [east, north] = [-least(({ lng }) => -lng), -least(({ lat }) => -lat)];
  const x = ({ lng }: Point) => margin + ((lng - west) / (east - west || 1)) * (width - 2 * margin);
  const y = ({ lat }: Point) => height - margin - ((lat - south) / (north - south || 1)) * (height - 2 * margin);
  const at = (place: Point) => `${x(place).toFixed(1)},${y(place).toFixed(1)}`;
  const line = `<polyline points="${(route?.places ?? []).map(at).join(" ")}" fill="none" stroke="${color}" stroke-width="4"/>`;
  const laid = layers.map(({ name, color: own = "#2e7d32", features }) => {
    const shapes = features.map((feature) => {
      if (feature.type === "Point") {
        const [lng, lat] = feature.coordinates;
        return `<circle cx="${x({ lat, lng })}" cy="${y({ lat, lng })}" r="4" fill="${own}"/>`;
      }
      const path = linesOf(feature).map((line) => `M${line.map(at).join("L")}`);
      const fill = feature.type === "Polygon" ? own : "none";
      return `<path d="${path.join("")}" fill="${fill}" fill-opacity="0.3" fill-rule="evenodd" stroke="${own}" stroke-width="2"/>`;
    });
    return `<g><title>${escape(name)}</title>${shapes.join("")}</g>`;
  });
  // Points stand out from the places that a route passes.
  const mark = (place: Place, shape: string) => {
    const [cx, cy] = at(place).split(",");
    return `<circle cx="${cx}" cy="${cy}" ${shape}><title>${escape(place.name)}</title></circle>`;
  };
  const marks = [
    ...(route?.places ?? []).map((place) => mark(place, `r="5" fill="${color}"`)),
    ...points.map((place) => mark(place, `r="9" fill="${color}" stroke="#ffb300" stroke-width="4"`)),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><rect width="${width}" height="${height}" fill="#eef3ea"/>${laid.join("")}${line}${marks.join("")}</svg>`;
}

/** The drawing as a page without scripts: the names of the points show where the pointer is. */
export function html(drawing: Drawing): string {
  const { route, layers } = drawing;
  const legend = layers.length === 0 ? "" : `<p>Layers: ${layers.map(({ name }) => escape(name)).join(", ")}</p>`;
  const says = route === undefined ? "" : `<p>${route.minutes} minutes: ${route.roads.map(escape).join(", ")}</p>`;
  const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'">`;
  return `<!doctype html><html lang="en"><meta charset="utf-8">${policy}<title>Map</title>${svg(drawing)}${says}${legend}</html>`;
}

const renderer = createRequire(import.meta.url).resolve("@resvg/resvg-wasm/index_bg.wasm");
// Throws if the process has loaded this module before, as tests do.
await initWasm(readFileSync(renderer)).catch(() => undefined);

/** The drawing as an image. */
export function picture(drawing: Drawing, format: "png" | "jpeg"): Uint8Array {
  const image = new Resvg(svg(drawing)).render();
  return format === "png" ? image.asPng() : encode({ data: image.pixels, width, height }, 90).data;
}

import type { Place, Point } from "./roads.ts";

/* In place of a directory of businesses: coffee shops along the roads of `roads.ts`. */

const shop = (name: string, lat: number, lng: number): Place => ({ name, lat, lng });

const shops: Readonly<Record<"coffee shop", readonly Place[]>> = {
  "coffee shop": [
    shop("Shoreline Coffee", 37.4265, -122.0807),
    shop("Charleston Beans", 37.4202, -122.0938),
    shop("Bayshore Roasters", 37.4129, -122.0795),
    shop("Castro Street Espresso", 37.3943, -122.0789),
    shop("University Avenue Coffee", 37.4455, -122.1615),
    shop("Mission Bay Beans", 37.7706, -122.3912),
    shop("Market Street Coffee", 37.7765, -122.4172),
    shop("Hayes Valley Espresso", 37.7762, -122.4246),
    shop("Jack London Roasters", 37.7955, -122.2761),
  ],
};

/** The mean radius of the earth, in miles. */
const radius = 3958.8;

/** The distance between two points in miles, by the haversine formula. */
function milesBetween(one: Point, other: Point): number {
  const rad = (degrees: number) => (degrees * Math.PI) / 180;
  const half = (a: number, b: number) => Math.sin(rad(b - a) / 2) ** 2;
  const chord = half(one.lat, other.lat) + Math.cos(rad(one.lat)) * Math.cos(rad(other.lat)) * half(one.lng, other.lng);
  return 2 * radius * Math.asin(Math.sqrt(chord));
}

/** Businesses within this many miles, the nearest first. */
export function within(what: keyof typeof shops, miles: number, here: Point): readonly Place[] {
  const near = shops[what].filter((place) => milesBetween(here, place) <= miles);
  return near.toSorted((one, other) => milesBetween(here, one) - milesBetween(here, other));
}

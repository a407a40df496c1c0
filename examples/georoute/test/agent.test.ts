import { data, hasCode, memoryStore, serve, text, type Part, type Task } from "@parley/node";
import { openIdConnect } from "@parley/a2a/auth";
import { cardKeySet, makeCardKey, trustCards } from "@parley/a2a/cards";
import { connect } from "@parley/a2a";
import { Resvg } from "@resvg/resvg-wasm";
import { expect, it, onTestFinished } from "vitest";
import { routePlanner, type Layer } from "../agent.ts";
import { card } from "../card.ts";
import { geoJson } from "../draw.ts";
import { placeOf, places, routeAlong, usualTraffic, type Preference } from "../roads.ts";
import { read } from "../scripted.ts";
import { within } from "../shops.ts";

const one = { port: 0, store: memoryStore(), logger: false } as const;

/** The agent over HTTP, and its answers: a task, whose artifact has a part for each media type. */
async function given() {
  const server = await serve(routePlanner(read, usualTraffic), { ...one, store: memoryStore() });
  onTestFinished(() => server.close());
  const client = await connect(server.url);
  return async (content: string | Part, ...acceptedOutputModes: string[]): Promise<Task> => {
    const parts = typeof content === "string" ? [{ text: content }] : [content];
    const { task } = await client.sendMessage({ message: { parts }, configuration: { acceptedOutputModes } });
    return task!;
  };
}

const partsOf = (task: Task) => task.artifacts?.[0]?.parts ?? [];
const typesOf = (task: Task) => partsOf(task).map(({ mediaType }) => mediaType);
const part = (task: Task, type: string) => partsOf(task).find(({ mediaType }) => mediaType === type);
const [inWords, inData] = card.skills[0].examples;

const cafes = {
  points: [
    { name: "Dana's <Café>", lat: 37.42, lng: -122.08 },
    { name: "Second cup", lat: 37.43, lng: -122.1 },
  ],
  style: { color: "#cc0000" },
};

const imageOf = (image: Part | undefined) => Buffer.from(image?.raw ?? "", "base64");

/** The colors of an image that can be decoded, as numbers: alpha, blue, green, red. */
function colorsOf(image: Part | undefined): ReadonlySet<number> {
  const source = `data:${image?.mediaType};base64,${image?.raw}`;
  const page = `<svg xmlns="http://www.w3.org/2000/svg" width="480" height="360"><image href="${source}"/></svg>`;
  return new Set(new Uint32Array(Uint8Array.from(new Resvg(page).render().pixels).buffer));
}

it("has the sample card of the specification (A2A 1.0 §8.5)", async () => {
  const issuer = "https://accounts.google.com";
  const key = await makeCardKey();
  const scopes = ["openid", "profile", "email"];
  const agent = routePlanner(read, usualTraffic);
  const interfaces = { JSONRPC: "/a2a/v1", "HTTP+JSON": "/a2a/json" };
  const server = await serve([{ agent, interfaces, extendedCard: (own) => own }], {
    ...one,
    push: true,
    grpc: true,
    signCards: { keys: [key] },
    authenticator: openIdConnect({ name: "google", issuer, scopes }),
  });
  onTestFinished(() => server.close());
  const { supportedInterfaces, ...rest } = server.agents[0]!.card;
  expect(rest).toMatchObject({
    name: "GeoSpatial Route Planner Agent",
    version: "1.2.0",
    provider: { organization: "Example Geo Services Inc.", url: "https://www.examplegeoservices.com" },
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
    securitySchemes: {
      google: { openIdConnectSecurityScheme: { openIdConnectUrl: `${issuer}/.well-known/openid-configuration` } },
    },
    securityRequirements: [{ schemes: { google: { list: scopes } } }],
    defaultInputModes: ["application/json", "text/plain"],
    defaultOutputModes: ["application/json", "image/png"],
  });
  expect(rest.skills.map(({ id, inputModes, outputModes }) => ({ id, inputModes, outputModes }))).toEqual([
    {
      id: "route-optimizer-traffic",
      inputModes: ["application/json", "text/plain"],
      outputModes: ["application/json", "application/vnd.geo+json", "text/html"],
    },
    {
      id: "custom-map-generator",
      inputModes: ["application/json"],
      outputModes: ["image/png", "image/jpeg", "application/json", "text/html"],
    },
  ]);
  expect(supportedInterfaces).toContainEqual(
    expect.objectContaining({ url: `${server.url}/a2a/v1`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }),
  );
  expect(supportedInterfaces).toContainEqual(
    expect.objectContaining({ url: `${server.url}/a2a/json`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" }),
  );
  expect(supportedInterfaces).toContainEqual(
    expect.objectContaining({ url: new URL(server.url).host, protocolBinding: "GRPC", protocolVersion: "1.0" }),
  );
  // Readers of 0.3 find the card of that specification (0.3 §5.7) in the same document.
  const old = (await (await fetch(`${server.url}/.well-known/agent-card.json`)).json()) as object;
  expect(old).toMatchObject({
    url: `${server.url}/a2a/v1`,
    preferredTransport: "JSONRPC",
    additionalInterfaces: expect.arrayContaining([
      { url: `${server.url}/a2a/v1`, transport: "JSONRPC" },
      { url: `${server.url}/a2a/json`, transport: "HTTP+JSON" },
    ]),
    iconUrl: "https://georoute-agent.example.com/icon.png",
    documentationUrl: "https://docs.examplegeoservices.com/georoute-agent/api",
    security: [{ google: scopes }],
    skills: card.skills.map(({ id, name, description, tags, examples }) => ({ id, name, description, tags, examples })),
    supportsAuthenticatedExtendedCard: true,
  });
  // A client that trusts the key accepts the card, whose signature is like that of the sample (A2A 1.0 §8.4).
  const trust = trustCards({ keys: [{ keySet: await cardKeySet([key]) }] });
  const client = await connect(server.url, { trust });
  const [signature] = client.card.signatures ?? [];
  const header: unknown = JSON.parse(Buffer.from(signature?.protected ?? "", "base64url").toString());
  expect(header).toMatchObject({ alg: "ES256", jku: `${server.url}/.well-known/card-keys.json` });
  await expect(client.sendMessage(inWords)).rejects.toSatisfy((error) => hasCode(error, "Unauthenticated"));
});

it("answers the first example of the card with data, GeoJSON and a page, and avoids tolls (RFC 7946)", async () => {
  const send = await given();
  const task = await send(inWords);
  expect(task.status.state).toBe("TASK_STATE_COMPLETED");
  expect(typesOf(task)).toEqual(["application/json", "application/vnd.geo+json", "text/html"]);
  expect(part(task, "application/json")?.data).toMatchObject({
    roads: ["US 101 to Palo Alto", "US 101 to San Mateo", "US 101 to the airport"],
    minutes: 51,
  });
  const [start, end] = [
    [-122.084, 37.422],
    [-122.379, 37.6213],
  ];
  expect(part(task, "application/vnd.geo+json")?.data).toMatchObject({
    type: "FeatureCollection",
    features: [
      {
        type: "Feature",
        geometry: { type: "LineString", coordinates: [start, [-122.143, 37.4419], [-122.3255, 37.563], end] },
      },
      { type: "Feature", geometry: { type: "Point", coordinates: start } },
      {},
      {},
      { type: "Feature", geometry: { type: "Point", coordinates: end } },
    ],
  });
  const page = part(task, "text/html");
  expect(page?.filename).toBe("route.html");
  expect(Buffer.from(page?.raw ?? "", "base64").toString()).toContain("51 minutes: US 101 to Palo Alto");
});

it("answers the second example, as text and as data, and avoids the ferry", async () => {
  const send = await given();
  for (const content of [inData, data(JSON.parse(inData) as { lat: number })]) {
    const route = part(await send(content, "application/json"), "application/json")?.data as { roads: string[] };
    expect(route.roads.at(-1)).toBe("US 101 to San Francisco");
    expect(route.roads).not.toContain("Oakland Ferry");
  }
});

it("draws a map as an image, as data and as a page", async () => {
  const send = await given();
  const task = await send(data(cafes));
  expect(typesOf(task)).toEqual(["image/png", "application/json", "text/html"]);
  const image = part(task, "image/png");
  expect(image?.filename).toBe("map.png");
  expect(imageOf(image).subarray(1, 4).toString()).toBe("PNG");
  expect(colorsOf(image)).toContain(0xff_00_00_cc);
  // An untrusted place name is not markup, and runs nothing.
  const page = Buffer.from(part(task, "text/html")?.raw ?? "", "base64").toString();
  expect(page).toContain("Dana&#39;s &#60;Café&#62;");
  expect(page).toContain("default-src 'none'");
});

it("lays data over a map, in each of its forms (the card: “Can overlay data layers.”)", async () => {
  const send = await given();
  const square = [-122.09, -122.06, -122.06, -122.09, -122.09].map((lng, at) => [
    lng,
    at > 1 && at < 4 ? 37.44 : 37.41,
  ]);
  const layers = [
    {
      name: "Toll <zone>",
      color: "#00ff00",
      features: [
        { type: "Polygon", coordinates: [square] },
        { type: "Point", coordinates: [-122.07, 37.425] },
      ],
    },
    {
      name: "Lines",
      features: [
        { type: "LineString", coordinates: square },
        { type: "Point", coordinates: square[0]! },
      ],
    },
  ];
  const task = await send(data({ ...cafes, layers }));
  expect(part(task, "application/json")?.data).toMatchObject({ points: cafes.points, layers });
  expect(colorsOf(part(task, "image/png"))).toContain(0xff_00_ff_00);
  const page = Buffer.from(part(task, "text/html")?.raw ?? "", "base64").toString();
  expect(page).toContain("<p>Layers: Toll &#60;zone&#62;, Lines</p>");
  expect(page).toContain("<title>Toll &#60;zone&#62;</title>");
  const map = { name: "map", points: [], route: undefined, layers: layers as unknown as readonly Layer[] };
  expect(geoJson(map).features.map(({ properties }) => properties)).toEqual([
    { layer: "Toll <zone>" },
    { layer: "Toll <zone>" },
    { layer: "Lines" },
    { layer: "Lines" },
  ]);
  for (const wrong of [
    { name: "x", features: [] },
    { name: "x", color: "red", features: layers[0]?.features },
  ]) {
    expect((await send(data({ ...cafes, layers: [wrong] } as never))).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  }
});

/** The agent over HTTP, and a conversation with it. */
async function talking() {
  const server = await serve(routePlanner(read, usualTraffic), { ...one, store: memoryStore() });
  onTestFinished(() => server.close());
  const conversation = (await connect(server.url)).conversation();
  return async (...parts: readonly Part[]): Promise<Task> => (await conversation.send({ message: { parts } })).task!;
}

const [ofTrip, ofShops] = card.skills[1].examples;
const namesOf = (task: Task) => {
  const map = part(task, "application/json")?.data as { readonly points: readonly { readonly name: string }[] };
  return map.points.map(({ name }) => name);
};

it("maps the trip that was planned in the conversation, with every stop highlighted (0.3 §5.7, the sample card's second skill)", async () => {
  const say = await talking();
  await say(text(inWords));
  const task = await say(text(ofTrip));
  expect(task.status.state).toBe("TASK_STATE_COMPLETED");
  expect(typesOf(task)).toEqual(["image/png", "application/json", "text/html"]);
  expect(namesOf(task)).toEqual([
    "1600 Amphitheatre Parkway, Mountain View, CA",
    "San Francisco International Airport",
  ]);
  // The preferences of the plan hold for its map, and the rings around the stops are in the image.
  expect(part(task, "application/json")?.data).toMatchObject({ minutes: 51, preferences: ["avoid_tolls"] });
  expect(colorsOf(part(task, "image/png"))).toContain(0xff_00_b3_ff);
});

it.each(["words", "data"])("asks for the stops if no trip is planned, and accepts them as %s", async (form) => {
  const say = await talking();
  const asked = await say(text(ofTrip));
  expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect(asked.status.message?.parts[0]?.text).toMatch(/^Which trip\?/);
  const stops = { origin: "Palo Alto", via: ["San Mateo"], destination: "San Francisco" };
  const task = await say(form === "data" ? data(stops) : text("from 'Palo Alto' to 'San Francisco'"));
  expect(task.id).toBe(asked.id);
  const via = form === "data" ? ["San Mateo"] : [];
  expect(namesOf(task)).toEqual(["Palo Alto", ...via, "San Francisco"]);
});

it("finds only the coffee shops within a mile of the location in the message (the second skill's second example)", async () => {
  const say = await talking();
  const location = { lat: 37.422, lng: -122.084 };
  const task = await say(text(ofShops), data({ location }));
  const found = ["Shoreline Coffee", "Charleston Beans", "Bayshore Roasters"];
  expect(namesOf(task)).toEqual(["You are here", ...found]);
  for (const { lat, lng } of within("coffee shop", 1, location)) {
    // A mile is 1/69 of a degree of latitude.
    expect(Math.hypot(lat - location.lat, (lng - location.lng) * Math.cos(0.653)) * 69).toBeLessThan(1.01);
  }
  // The message sets the radius.
  expect(namesOf(await say(text(ofShops.replace("1-mile", "3-mile")), data({ location })))).toContain(
    "Castro Street Espresso",
  );
});

it.each([
  [data({ lat: 37.775, lng: -122.4194 }), ["Market Street Coffee", "Hayes Valley Espresso"]],
  [text("37.775, -122.4194"), ["Market Street Coffee", "Hayes Valley Espresso"]],
  [text("Fremont"), []],
])("asks for the caller's location, and accepts the answer %#", async (answer, found) => {
  const say = await talking();
  const asked = await say(text(ofShops));
  expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect(asked.status.message?.parts[0]?.text).toMatch(/^Where are you\?/);
  expect(namesOf(await say(answer))).toEqual(["You are here", ...found]);
});

it("answers only in what the caller accepts (A2A 1.0 §3.2.2)", async () => {
  const send = await given();
  expect(typesOf(await send(inWords, "text/html"))).toEqual(["text/html"]);
  expect(typesOf(await send(inWords, "application/*"))).toEqual(["application/json", "application/vnd.geo+json"]);
  const jpeg = await send(data(cafes), "image/jpeg");
  expect(typesOf(jpeg)).toEqual(["image/jpeg"]);
  expect(colorsOf(partsOf(jpeg)[0]).size).toBeGreaterThan(1);
  expect(typesOf(await send(data(cafes), "image/*"))).toEqual(["image/png"]);
  const none = await send(inWords, "image/png");
  expect(none.status.state).toBe("TASK_STATE_REJECTED");
  expect(none.status.message?.parts[0]?.text).toContain("text/html, and you accept none of it");
});

it("asks again if a place is unknown, or the data does not match", async () => {
  const send = await given();
  const unknown = await send("Plan a route from 'Atlantis' to 'Palo Alto'");
  expect(unknown.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect(unknown.status.message?.parts[0]?.text).toContain("I know only 1600 Amphitheatre Parkway");
  for (const lat of [91, "north"]) {
    const task = await send(data({ points: [{ name: "Pole", lat, lng: 0 }] }));
    expect(task.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  }
  const control = await send(data({ points: [{ name: "a\u0000b\ud800", lat: 1, lng: 1 }] }));
  expect(control.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
});

it("finds the fastest route with the current traffic, or reports that there is none", async () => {
  const [office, airport] = [placeOf("1600 amphitheatre parkway, mountain view, ca")!, places[3]!];
  const roads = async (...wishes: Preference[]) =>
    (await routeAlong([office, airport], wishes, usualTraffic))?.roads[0];
  expect(await roads()).toBe("US 101 Express Lanes");
  expect(await roads("avoid_tolls")).toBe("US 101 to Palo Alto");
  expect(await routeAlong([office, airport], [], async () => Infinity)).toBeUndefined();
  expect(await routeAlong([office, office], [], usualTraffic)).toMatchObject({ roads: [], minutes: 0 });
});

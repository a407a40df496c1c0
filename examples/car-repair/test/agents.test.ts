import { data, file, memoryStore, serve, type JsonObject, type Task } from "@parley/node";
import { connect, type Conversation } from "@parley/a2a";
import type { Interceptor } from "@parley/a2a/protocol";
import { testAgent } from "@parley/testing";
import { expect, it, onTestFinished } from "vitest";
import { film, type Scene } from "../film.ts";
import { shopManager } from "../manager.ts";
import { mechanic, type Think } from "../mechanic.ts";
import { listen, think, watch } from "../scripted.ts";
import { partsSupplier } from "../supplier.ts";
import { fromAvi, toAvi } from "../video.ts";
import { serveTools, warehouseTools, workshopTools, type OnCall, type ToolCall } from "../tools.ts";

const part = "#12345";

/** An uncompressed video of a car. */
const video = (scene: Scene = { knocks: 5, leaks: true }) =>
  file(film(scene), { filename: "noise.avi", mediaType: "video/x-msvideo" });

/** The tools of the mechanic and the supplier, over MCP. */
async function tools(stock: Map<string, number>, onCall: OnCall) {
  const workshop = await serveTools(workshopTools(onCall));
  const warehouse = await serveTools(warehouseTools(stock));
  onTestFinished(async () => {
    await workshop.close();
    await warehouse.close();
  });
  return { workshop: workshop.client, warehouse: warehouse.client };
}

/** The three agents, over HTTP. */
async function given({ stock = 1, thinks = think }: { readonly stock?: number; readonly thinks?: Think } = {}) {
  const parts = new Map([[part, stock]]);
  const called: ToolCall[] = [];
  const { workshop, warehouse } = await tools(parts, (name, args) => called.push({ name, arguments: args }));
  const one = { port: 0, store: memoryStore(), logger: false } as const;
  const heard: string[] = [];
  const hears: Interceptor = (next) => ({
    call: (operation, asked, context) => next.call(operation, asked, context),
    stream(operation, asked, context) {
      if ("message" in asked) heard.push(asked.message.parts[0]?.text ?? "");
      return next.stream(operation, asked, context);
    },
  });
  const supplier = await serve(
    partsSupplier(async () => warehouse),
    { ...one, interceptors: [hears] },
  );
  const other = { tools: async () => workshop, supplier: () => connect(supplier.url) };
  const garage = await serve(mechanic(thinks, other), { ...one, store: memoryStore() });
  const shop = await serve(
    shopManager(listen, () => connect(garage.url)),
    { ...one, store: memoryStore() },
  );
  onTestFinished(async () => {
    for (const each of [shop, garage, supplier]) await each.close();
  });
  const conversation = (await connect(shop.url)).conversation();
  return { called, parts, workshop, conversation, heard, supplier: await connect(supplier.url) };
}

const question = ({ status }: Task) => {
  expect(status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  return status.message?.parts[0]?.text;
};

/** Runs the whole conversation with the manager. */
async function talk(conversation: Conversation): Promise<Task> {
  await conversation.send("My car is making a rattling noise");
  await conversation.send({ message: { parts: [video()] } });
  await conversation.send("For two weeks");
  const { task } = await conversation.send("2018 Toyota Camry, XYZ123");
  return task!;
}

/** Something that a test waits for. */
function signal() {
  let give = (): void => undefined;
  const given = new Promise<void>((resolve) => (give = resolve));
  return { given, give: () => give() };
}

/** The texts of both sides, in the languages of the guide "A2A and MCP" and its translation. */
const stories = [
  {
    language: "English",
    complaint: "My car is making a rattling noise",
    askVideo: "Can you send me a video of the noise?",
    leak: "I see some fluid leaking. How long has this been happening?",
    since: "For two weeks",
    whichCar: /^Which car is it\?/,
    car: "2018 Toyota Camry, XYZ123",
    toSupplier: "Do you have part #12345 in stock for a Toyota Camry 2018?",
    fromSupplier: "There are 1 of #12345, for 49 dollars.",
    done: /^Your Camry is being repaired\. .*rattling noise; For two weeks \(5 knocks a second, fluid leaking\)\. P0300, Toyota Camry/,
  },
  {
    language: "Chinese",
    complaint: "我的车有咔哒咔哒的异响",
    askVideo: "你能发一段噪音的视频吗?",
    leak: "我看到有液体渗漏,这种情况出现多久了?",
    since: "两个星期",
    whichCar: /^是哪辆车\?/,
    car: "2018 款丰田凯美瑞,XYZ123",
    toSupplier: "你们有 2018 款丰田凯美瑞的零件 #12345 库存吗?",
    fromSupplier: "零件 #12345 有 1 件,每件 49 美元。",
    done: /^您的凯美瑞正在维修。.*咔哒咔哒的异响; 两个星期 \(5 knocks a second, fluid leaking\)\. P0300, Toyota Camry/,
  },
];

it.each(stories)(
  "asks for a video of the noise, sees the leak, and has the car diagnosed and a part ordered, in $language (A2A and MCP)",
  async (story) => {
    const { conversation, called, parts, heard, supplier } = await given();
    expect(question((await conversation.send(story.complaint)).task!)).toBe(story.askVideo);
    expect(question((await conversation.send({ message: { parts: [video()] } })).task!)).toBe(story.leak);
    expect(question((await conversation.send(story.since)).task!)).toMatch(story.whichCar);
    const { task } = await conversation.send(story.car);
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task?.status.message?.parts[0]?.text).toMatch(story.done);
    // The mechanic called each tool once over MCP, with the names and arguments of the guide.
    expect(called).toEqual([
      { name: "scan_vehicle_for_error_codes", arguments: { vehicle_id: "XYZ123" } },
      {
        name: "get_repair_procedure",
        arguments: { error_code: "P0300", vehicle_make: "Toyota", vehicle_model: "Camry" },
      },
      { name: "raise_platform", arguments: { height_meters: 2 } },
    ]);
    // The supplier is another agent: a question without a task, then a task, in one conversation.
    expect(heard).toContain(story.toSupplier);
    expect(parts.get(part)).toBe(0);
    const [ordered] = (await supplier.listTasks({ includeArtifacts: true })).tasks;
    expect(ordered?.artifacts?.[0]?.parts[0]?.data).toEqual({ part, order: ordered?.id });
    expect(task?.artifacts?.map(({ name }) => name).toSorted()).toEqual(["diagnosis", "order"]);
    const { message } = await supplier.sendMessage(story.toSupplier);
    expect(message?.parts[0]?.text).toBe(story.fromSupplier.replace("1 of", "0 of").replace("有 1 件", "有 0 件"));
  },
);

it("describes what it finds in the video, and asks for another one if it finds nothing", async () => {
  const { conversation } = await given();
  expect(question((await conversation.send("Hello")).task!)).toBe("What is wrong with your car?");
  await conversation.send("It rattles");
  const still = await conversation.send({ message: { parts: [video({ knocks: 0, leaks: false })] } });
  expect(question(still.task!)).toMatch(/^I can find neither a noise nor a leak/);
  const broken = file(new TextEncoder().encode("RIFF"), { filename: "noise.mp4", mediaType: "video/mp4" });
  expect(question((await conversation.send({ message: { parts: [broken] } })).task!)).toMatch(/^I can find neither/);
  const loud = await conversation.send({ message: { parts: [video({ knocks: 4, leaks: false })] } });
  expect(question(loud.task!)).toBe("I hear it knock 4 times a second. How long has this been happening?");
});

it("writes AVI files, and reads them", () => {
  const scene = film({ knocks: 8, leaks: true });
  const read = fromAvi(scene);
  expect(read).toMatchObject({ width: 48, height: 32, rate: 5, sampleRate: 8000 });
  expect(Buffer.from(toAvi(read!))).toEqual(Buffer.from(scene));
  expect(watch(scene)).toEqual({ leak: true, knocks: 8 });
  for (let length = 0; length < scene.length; length += 997) fromAvi(scene.subarray(0, length));
  expect(fromAvi(scene.subarray(0, 100))).toBeUndefined();
  const timeless = scene.slice();
  timeless.fill(0, timeless.indexOf(0x61, 20) + 8, timeless.indexOf(0x61, 20) + 12);
  expect([String.fromCharCode(...timeless.subarray(24, 28)), watch(timeless)]).toEqual(["avih", undefined]);
});

it("uses the newest version of MCP with its tools", async () => {
  const { workshop } = await given();
  expect(workshop.getNegotiatedProtocolVersion()).toBe("2026-07-28");
});

it("reports that a part is out of stock, and orders nothing", async () => {
  const { conversation, supplier } = await given({ stock: 0 });
  const { status } = await talk(conversation);
  expect(status.state).toBe("TASK_STATE_FAILED");
  expect(status.message?.parts[0]?.text).toContain(`Part ${part} is out of stock.`);
  expect((await supplier.listTasks()).tasks).toEqual([]);
});

it("ends a job whose model never finishes, and passes tool errors to the model", async () => {
  const results: string[] = [];
  const { conversation, called } = await given({
    thinks: async (_job, done) => {
      results.push(done.at(-1)?.result ?? "");
      const arguments_: JsonObject = { error_code: "P9999", vehicle_make: "Toyota", vehicle_model: "Camry" };
      return { call: { name: "get_repair_procedure", arguments: arguments_ } };
    },
  });
  const { status } = await talk(conversation);
  expect(status.state).toBe("TASK_STATE_FAILED");
  expect(status.message?.parts[0]?.text).toContain("I did not find out what is wrong.");
  expect(called).toHaveLength(20);
  expect(results[1]).toBe("The manual has no P9999.");
});

it("repeats only the call in progress when the mechanic crashed, and takes one part", async () => {
  const parts = new Map([[part, 2]]);
  const called: string[] = [];
  const [begun, crashed] = [signal(), signal()];
  const { workshop, warehouse } = await tools(parts, async (name) => {
    if (called.push(name) !== 2) return;
    await begun.given;
    await garage.crash();
    crashed.give();
  });
  const supplier = await testAgent(partsSupplier(async () => warehouse));
  const other = { tools: async () => workshop, supplier: async () => supplier.client };
  const garage = await testAgent(mechanic(think, other), { clock: supplier.clock });
  onTestFinished(async () => {
    await garage.close();
    await supplier.close();
  });
  const vehicle = { id: "XYZ123", year: 2018, make: "Toyota", model: "Camry" };
  const { task } = await garage.client.sendMessage({
    message: { parts: [data({ vehicle, complaint: "It rattles", language: "en", leak: true, knocks: 5 })] },
    configuration: { returnImmediately: true },
  });
  begun.give();
  await crashed.given;
  await garage.restart();
  const done = await garage.clock.until(garage.client.waitFor(task!));
  expect(done.status.state).toBe("TASK_STATE_COMPLETED");
  const [scan, read, raise] = ["scan_vehicle_for_error_codes", "get_repair_procedure", "raise_platform"];
  expect(called).toEqual([scan, read, read, raise]);
  expect(parts.get(part)).toBe(1);
  expect(garage.problems).toEqual([]);
});

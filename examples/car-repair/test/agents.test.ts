import { data, file, memoryStore, type JsonObject, type Task } from "@parley/a2a";
import { connect, type Conversation } from "@parley/a2a/client";
import { testAgent } from "@parley/a2a/testing";
import { serve } from "@parley/node";
import { expect, it, onTestFinished } from "vitest";
import { shopManager } from "../manager.ts";
import { mechanic, type Think } from "../mechanic.ts";
import { listen, think } from "../scripted.ts";
import { partsSupplier } from "../supplier.ts";
import { serveTools, warehouseTools, workshopTools } from "../tools.ts";

const part = "#12345";
const said = "My 2018 Toyota Camry, XYZ123, is making a rattling noise";
const picture = file(new Uint8Array([1, 2, 3]), { filename: "left-wheel.png", mediaType: "image/png" });

/** The tools of both, over MCP. */
async function tools(stock: Map<string, number>, onCall: (name: string) => unknown) {
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
  const called: string[] = [];
  const { workshop, warehouse } = await tools(parts, (name) => called.push(name));
  const one = { port: 0, store: memoryStore(), logger: false } as const;
  const supplier = await serve(
    partsSupplier(async () => warehouse),
    one,
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
  return { called, parts, workshop, conversation, supplier: await connect(supplier.url) };
}

const question = ({ status }: Task) => {
  expect(status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  return status.message?.parts[0]?.text;
};

/** The conversation with the manager, up to its end. */
async function talk(conversation: Conversation): Promise<Task> {
  await conversation.send(said);
  await conversation.send({ message: { parts: [picture] } });
  const { task } = await conversation.send("For two weeks");
  return task!;
}

/** Something that a test waits for. */
function signal() {
  let give = (): void => undefined;
  const given = new Promise<void>((resolve) => (give = resolve));
  return { given, give: () => give() };
}

it("asks for pictures of the left wheel, sees the leak, and has the car diagnosed and a part ordered", async () => {
  const { conversation, called, parts, supplier } = await given();
  expect(question((await conversation.send("Hello")).task!)).toBe("Which car is it, and what is wrong with it?");
  expect(question((await conversation.send(said)).task!)).toBe("Please send me pictures of the left wheel.");
  const seen = await conversation.send({ message: { parts: [picture] } });
  expect(question(seen.task!)).toBe("I see some fluid leaking. How long has this been happening?");
  const { task } = await conversation.send("For two weeks");
  expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
  expect(task?.status.message?.parts[0]?.text).toMatch(
    /^Your Camry is being repaired\. .*rattling noise; some fluid leaking, For two weeks\. P0300, Toyota Camry: random misfire/,
  );
  // The mechanic called its tools over MCP, as the guide names them, and each once.
  expect(called).toEqual(["scan_vehicle_for_error_codes", "get_repair_procedure", "raise_platform"]);
  // The supplier is another agent: a question without a task, then a task, in one conversation.
  expect(parts.get(part)).toBe(0);
  const [ordered] = (await supplier.listTasks({ includeArtifacts: true })).tasks;
  expect(ordered?.artifacts?.[0]?.parts[0]?.data).toEqual({ part, order: ordered?.id });
  expect(task?.artifacts?.map(({ name }) => name).toSorted()).toEqual(["diagnosis", "order"]);
});

it("speaks the newest version of MCP with its tools", async () => {
  const { workshop } = await given();
  expect(workshop.getNegotiatedProtocolVersion()).toBe("2026-07-28");
});

it("says that a part is out of stock, and orders nothing", async () => {
  const { conversation, supplier } = await given({ stock: 0 });
  const { status } = await talk(conversation);
  expect(status.state).toBe("TASK_STATE_FAILED");
  expect(status.message?.parts[0]?.text).toContain(`Part ${part} is out of stock.`);
  expect((await supplier.listTasks()).tasks).toEqual([]);
});

it("ends a job whose model finds no end, and gives the model what a tool says is wrong", async () => {
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

it("repeats only the call that was under way when the mechanic crashed, and takes one part", async () => {
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
    message: { parts: [data({ vehicle, complaint: "It rattles" })] },
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

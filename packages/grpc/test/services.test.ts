import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { obedient } from "./support/agents.ts";
import { GrpcJs, statusOf } from "./support/grpc-js.ts";
import { bindingOf, host, serve } from "./support/host.ts";
import { registry } from "./support/oracle.ts";

const check = "/grpc.health.v1.Health/Check";
const watch = "/grpc.health.v1.Health/Watch";

describe("health", () => {
  test("of the server and of each service is SERVING", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    for (const service of ["", "lf.a2a.v1.A2AService"]) {
      expect((await client.unary(check, { service })).value).toEqual({ status: "SERVING" });
    }
  });

  test("of an unknown service is NOT_FOUND, and SERVICE_UNKNOWN for watchers", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    await client.unary(check, { service: "x.Y" }).then(
      () => expect.unreachable(),
      (error: unknown) => expect(statusOf(error).code).toBe(5),
    );
    const watching = client.stream(watch, { service: "x.Y" });
    watching.on("error", () => {});
    expect(await new Promise((resolve) => watching.once("data", resolve))).toEqual({ status: "SERVICE_UNKNOWN" });
    watching.cancel();
  });

  test("tells watchers when the server stops, and needs no credentials", async () => {
    const authenticate = () => {
      throw new Error("not for health");
    };
    await using server = await host(bindingOf({}, { authenticate }));
    using client = new GrpcJs(server.address);
    const watching = client.stream(watch, {});
    const seen: unknown[] = [];
    const ended = new Promise((resolve) => watching.on("error", resolve));
    watching.on("data", (each) => seen.push(each));
    await new Promise((resolve) => watching.once("data", resolve));
    server.stop();
    expect(statusOf(await ended).code).toBe(14);
    expect(seen).toEqual([{ status: "SERVING" }, { status: "NOT_SERVING" }]);
    expect((await client.unary(check, {})).value).toEqual({ status: "NOT_SERVING" });
  });
});

interface Reflected {
  readonly originalRequest: unknown;
  readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] };
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly string[] };
  readonly allExtensionNumbersResponse?: unknown;
  readonly errorResponse?: { readonly errorCode: number };
}

describe.each(["v1", "v1alpha"])("reflection %s", (version) => {
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;

  async function ask(...requests: readonly object[]): Promise<Reflected[]> {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const call = client.bidi(path);
    for (const request of requests) call.write(request);
    call.end();
    const answers: Reflected[] = [];
    for await (const answer of call) answers.push(answer as Reflected);
    expect(answers.map(({ originalRequest }) => originalRequest)).toEqual(requests);
    return answers;
  }

  test("lists the services", async () => {
    const [answer] = await ask({ listServices: "*" });
    const names = answer?.listServicesResponse?.service.map(({ name }) => name) ?? [];
    expect(names).toContain("lf.a2a.v1.A2AService");
    expect(names).toContain("grpc.health.v1.Health");
    expect(names).toContain(`grpc.reflection.${version}.ServerReflection`);
  });

  test.each(["lf.a2a.v1.A2AService", "lf.a2a.v1.A2AService.GetTask", "lf.a2a.v1.Task", "lf.a2a.v1.Task.metadata"])(
    "returns the file of %s, with all its imports",
    async (fileContainingSymbol) => {
      const [answer] = await ask({ fileContainingSymbol });
      const files = (answer?.fileDescriptorResponse?.fileDescriptorProto ?? []).map((base64) =>
        fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, "base64")),
      );
      expect(files[0]?.name).toBe("lf/a2a/v1/a2a.proto");
      // Imports come after the file that imports them. This reader needs them before.
      const rebuilt = createFileRegistry(create(FileDescriptorSetSchema, { file: sorted(files) }));
      const service = rebuilt.getService("lf.a2a.v1.A2AService");
      expect(service?.methods).toHaveLength(11);
      expect(service?.proto).toEqual(registry.getService("lf.a2a.v1.A2AService")?.proto);
    },
  );

  test("answers each request in turn, those for unknown names with an error", async () => {
    const answers = await ask(
      { fileByFilename: "google/protobuf/struct.proto" },
      { fileByFilename: "no/such.proto" },
      { fileContainingSymbol: "x.Y" },
      { fileContainingExtension: { containingType: "google.protobuf.FieldOptions", extensionNumber: 1052 } },
      { fileContainingExtension: { containingType: "x.Y", extensionNumber: 1 } },
      { allExtensionNumbersOfType: "google.protobuf.FieldOptions" },
      { allExtensionNumbersOfType: "lf.a2a.v1.Task" },
      { allExtensionNumbersOfType: "x.Y" },
      {},
    );
    expect(answers.map(({ errorResponse }) => errorResponse?.errorCode)).toEqual([
      undefined,
      5,
      5,
      undefined,
      5,
      undefined,
      undefined,
      5,
      3,
    ]);
    expect(answers[5]?.allExtensionNumbersResponse).toEqual({
      baseTypeName: "google.protobuf.FieldOptions",
      extensionNumber: [1052],
    });
  });
});

function sorted<File extends { readonly name: string; readonly dependency: string[] }>(files: readonly File[]): File[] {
  const done = new Map<string, File>();
  const add = (file: File): void => {
    for (const name of file.dependency) {
      const wanted = files.find((each) => each.name === name);
      if (wanted !== undefined && !done.has(name)) add(wanted);
    }
    done.set(file.name, file);
  };
  for (const file of files) add(file);
  return [...done.values()];
}

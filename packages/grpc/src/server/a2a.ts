import { A2AError } from "@parley/a2a";
import type { OperationName, Principal, Reply, StreamReply, UnaryName, UnaryOperations } from "@parley/a2a/protocol";
import {
  codecOf,
  converted,
  invoke,
  requestedVersion,
  type ServerHost,
  type Codec,
  type Invoked,
  type ServerContext,
  type Shapes,
} from "@parley/a2a/transport";
import { decode } from "../protobuf/decode.ts";
import type { A2AMethod } from "../services.ts";
import type { Call } from "./call.ts";
import { ok, type FrameWriter, type Method } from "./method.ts";
import type { Metadata } from "./wire.ts";

/** What a request without a version means to the letter of §3.6.2. */
const versionOfSilence = "0.3";

/**
 * The version that a call of 1.0's service is to be read in: its drafts share the service. One that names none is of the
 * first, since the name of the service says enough, unless `strictVersion` holds the caller to §3.6.2.
 */
export function requestedCodec(binding: ServerHost, codecs: readonly [Codec, ...Codec[]], call: Call): Codec {
  const named = requestedVersion(call, "") ?? (binding.strictVersion ? versionOfSilence : undefined);
  return named === undefined || named === codecs[0].version ? codecs[0] : codecOf(codecs, named);
}

/** Answers a method of A2A through the services of a binding. */
export function a2aMethod(
  method: A2AMethod,
  binding: ServerHost,
  codecFor: (call: Call) => Codec,
  frames: FrameWriter,
): Method {
  // The proto of 0.3 has no tenant, and a call no path: an agent that is alone needs no name.
  const alone = binding.services.size === 1 ? [...binding.services.keys()][0] : undefined;
  return async (call) => {
    const codec = codecFor(call);
    const shapes = codec.grpc ?? codec.rest;
    if (binding.operations[method.operation] === undefined) throw new A2AError("MethodNotFound");
    const known = binding.authenticate(call);
    const principal = known instanceof Promise ? await known : known;
    // Its bytes and what they say stand in no variable here: those live until the answer, which may be hours away.
    let invoked: Invoked | undefined = invokeBytes(
      binding,
      codec,
      shapes,
      method,
      call,
      principal,
      alone,
      await call.only(),
    );
    const { context } = invoked;
    try {
      if (invoked.stream) {
        await stream(call, method, shapes, context, await invoked.reply, frames);
      } else {
        const replied = reply(call, method, shapes, context, invoked.operation, await invoked.reply, frames);
        // While it waits for its reader, nobody holds what it was made from.
        invoked = undefined;
        await replied;
        if (context.reserved > 0) await call.sent();
      }
    } finally {
      context.end();
    }
  };
}

/** Answers with one message. */
function reply(
  call: Call,
  { output }: A2AMethod,
  shapes: Shapes,
  context: ServerContext,
  operation: UnaryName,
  answer: Reply<UnaryOperations[UnaryName]["response"]>,
  frames: FrameWriter,
): Promise<void> | undefined {
  const metadata = activated(call, answer.extensions);
  const frame = frames.write(output, [shapes.responseOf<OperationName>(operation, answer)]);
  context.shrink(frame.length);
  return call.reply(frame, okWith(metadata), metadata);
}

function invokeBytes(
  binding: ServerHost,
  codec: Codec,
  shapes: Shapes,
  { input: type, operation }: A2AMethod,
  call: Call,
  principal: Principal,
  alone: string | undefined,
  bytes: Uint8Array,
): Invoked {
  const input = decode(type, bytes, { depth: binding.limits.depth, subject: "request" });
  // The zero of a field that is not said: Go's SDK sends it for every list that names no size (A2A 1.0 §3.1.4).
  if (operation === "ListTasks" && input["pageSize"] === 0) delete input["pageSize"];
  const tenant = codec.tenantInPath === true ? alone : undefined;
  return invoke(binding, codec, shapes, operation, input, call, principal, tenant, converted);
}

async function stream(
  call: Call,
  method: A2AMethod,
  shapes: Shapes,
  context: ServerContext,
  { batches, extensions }: StreamReply,
  frames: FrameWriter,
): Promise<void> {
  const metadata = activated(call, extensions);
  const source = batches[Symbol.asyncIterator]();
  call.onStop(() => void source.return?.().catch(() => undefined));
  call.open(metadata);
  while (!call.over) {
    const next = await source.next();
    if (next.done === true) break;
    await call.write(
      frames.write(
        method.output,
        next.value.map((item) => shapes.eventOf(item)),
      ),
    );
    context.release();
  }
  call.close(okWith(metadata));
}

function okWith(metadata: Metadata | undefined): Metadata {
  return metadata === undefined ? ok : Object.assign({}, ok, metadata);
}

/** Which extensions were activated, in the header that they were asked for in; peers look in the head or in the trailers. */
function activated(call: Call, extensions: readonly string[] | undefined): Metadata | undefined {
  if (extensions === undefined || extensions.length === 0) return undefined;
  const former = !call.header("a2a-extensions") && call.header("x-a2a-extensions") !== undefined;
  return { [former ? "x-a2a-extensions" : "a2a-extensions"]: extensions.join(", ") };
}

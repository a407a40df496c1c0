import type { Clock } from "@parley/a2a/internal/base/index";
import type { Artifact } from "@parley/a2a/internal/model/index";
import type { AgentEvent, ArtifactWriter, WriterOptions } from "@parley/a2a/internal/protocol/index";
import { defined } from "@parley/a2a/internal/base/defined";
import { endsWithin } from "@parley/a2a/internal/base/async";

const defaultMaxDelay = 50;

/** A writer whose pending text can be sent without new text, for `streamText`. */
interface FlushableWriter extends ArtifactWriter {
  readonly hasPending: boolean;
  flush(): readonly AgentEvent[];
}

/** Collects tokens into chunks by size and time, so that an answer of ten thousand tokens is stored and sent as a few dozen events. */
export function createWriter(artifactId: string, options: WriterOptions, clock: Clock): FlushableWriter {
  const maxChars = options.maxChars ?? 4096;
  const maxDelay = options.maxDelay ?? defaultMaxDelay;
  const { name, description, metadata, mediaType } = options;
  let pending = "";
  let begun = false;
  let ended = false;
  let sentAt = clock.elapsed();

  function chunk(last: boolean): readonly AgentEvent[] {
    // `defined()` would build lists for each chunk.
    const part = { text: pending, ...(mediaType !== undefined && { mediaType }) };
    const head = begun ? {} : defined({ name, description, metadata });
    const artifact: Artifact = { artifactId, ...head, parts: [part] };
    const event: AgentEvent = {
      kind: "artifact",
      artifact,
      ...(begun && { append: true }),
      ...(last && { lastChunk: true }),
    };
    begun = true;
    pending = "";
    sentAt = clock.elapsed();
    return [event];
  }

  return {
    artifactId,
    get hasPending() {
      return pending !== "";
    },
    flush: () => (pending === "" ? [] : chunk(false)),
    write(text) {
      if (ended) throw new Error(`The writer of artifact ${artifactId} has ended`);
      pending += text;
      // The first piece is sent immediately, so that a reader soon sees the beginning.
      const due = !begun || pending.length >= maxChars || clock.elapsed() - sentAt >= maxDelay;
      return due && pending !== "" ? chunk(false) : [];
    },
    end() {
      if (ended) return [];
      ended = true;
      return chunk(true);
    },
  };
}

/** The chunks of a source of text. Pending text is sent after the delay, even while the source pauses. */
export async function* streamText(
  source: AsyncIterable<string>,
  artifactId: string,
  options: WriterOptions,
  clock: Clock,
): AsyncGenerator<AgentEvent, void, void> {
  const writer = createWriter(artifactId, options, clock);
  const tokens = source[Symbol.asyncIterator]();
  let finished = false;
  try {
    while (!finished) {
      const token = tokens.next();
      if (writer.hasPending && !(await endsWithin(clock, options.maxDelay ?? defaultMaxDelay, token)))
        yield* writer.flush();
      const next = await token;
      finished = next.done === true;
      yield* next.done === true ? writer.end() : writer.write(next.value);
    }
  } finally {
    if (!finished) await tokens.return?.();
  }
}

import { defineAgent, memoryStore, serve, type Server } from "@parley/node";
import { connect, text, type Client } from "@parley/a2a";
import { timestampExtension } from "@parley/extensions/timestamp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describePeer, runClient, startServer, type PeerProgram, type RunningServer } from "./peer.ts";
import { callFromJs, startJsServer, type Stamps } from "./timestamp-js.ts";

/*
 * The Timestamp extension with peers that behave like its public samples on the wire (a2aproject/a2a-samples, samples/{python,js,go}/
 * extensions/timestamp), on the SDKs of their languages: their clients with our server, and our client with their servers.
 */

const key = "github.com/a2aproject/a2a-samples/extensions/timestamp/v1/timestamp";
/** The times of our clock and the peers' clock. */
const ours = 1_800_000_000;
const theirs = 1_700_000_000;

const timestamp = timestampExtension({ now: () => ours * 1000 });

/** Behaves like the peers' agents, but sees only the stamps that it receives. */
const agent = defineAgent({
  name: "Parley stamps",
  description: "Stamps what it says",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield turn.working("working");
    yield turn.artifact({ name: "heard", parts: [text(JSON.stringify(turn.message.metadata?.[key]))] });
    yield turn.completed("done");
  },
});

const iso = (seconds: number): string => new Date(seconds * 1000).toISOString();
/** All UTC formats of RFC 3339 that the samples write. */
const formsOf = (seconds: number): unknown =>
  expect.toBeOneOf([iso(seconds), iso(seconds).replace(".000Z", "+00:00"), iso(seconds).replace(".000Z", "Z")]);

interface Peer {
  call(url: string): Promise<Stamps>;
  serve(): Promise<RunningServer>;
}

const programs: readonly PeerProgram[] = [
  { name: "Python SDK 1.3.0", environment: "python1", program: "timestamp_v1.py" },
  { name: "Go SDK 2.3.1", environment: "go", program: "timestamp-v2" },
];

function peerOf(program: PeerProgram): Peer {
  return {
    async call(url) {
      const { result, text: words } = (await runClient(program, ["call", url, String(theirs)])).get("stamps") ?? {};
      if (result === undefined) throw new Error(words);
      return result as Stamps;
    },
    serve: () => startServer(program, ["serve", String(theirs)]),
  };
}

const js: Peer = {
  call: (url) => callFromJs(url, theirs),
  serve: () => startJsServer(theirs),
};

function testsOf(peer: Peer): void {
  describe("calls our agent, which need not know the extension", () => {
    let server: Server;
    beforeAll(async () => {
      server = await serve(agent, { port: 0, store: memoryStore(), extensions: [timestamp] });
    });
    afterAll(() => server.close({ grace: 0 }));

    it("and finds our stamp on each status message and artifact; the agent received its stamp", async () => {
      const { stamps, texts } = await peer.call(server.url);
      expect(stamps).toEqual([iso(ours), iso(ours), iso(ours)]);
      const [working, heard = "", done] = texts;
      expect([working, JSON.parse(heard), done]).toEqual(["working", formsOf(theirs), "done"]);
    });
  });

  describe("is called by our client", () => {
    let server: RunningServer;
    let client: Client<typeof timestamp>;
    beforeAll(async () => {
      server = await peer.serve();
      client = await connect(server.url, { extensions: [timestamp] });
    });
    afterAll(() => server.stop());

    it("which stamps its message, and reads the stamps on messages and artifacts", async () => {
      const stamps: (string | undefined)[] = [];
      let heard: string | undefined;
      for await (const event of client.sendStreamingMessage("hi")) {
        heard ??= event.artifactUpdate?.artifact.parts[0]?.text;
        if (event.artifactUpdate !== undefined) stamps.push(event.ext(timestamp)?.artifact.at);
        if (event.statusUpdate?.status.message !== undefined) stamps.push(event.ext(timestamp)?.message.at);
      }
      expect(heard).toBe(iso(ours));
      expect(stamps).toEqual([formsOf(theirs), formsOf(theirs), formsOf(theirs)]);
    });

    it("which gets no stamps without requesting them (A2A 1.0 §4.6)", async () => {
      const plain = await connect(server.url);
      const { task } = await plain.sendMessage("hi");
      expect(JSON.stringify(task)).not.toContain(key);
    });
  });
}

for (const program of programs) describePeer(program, () => testsOf(peerOf(program)));
describe("JavaScript SDK 1.3.0", () => {
  testsOf(js);
});

import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { A2AError } from "../../src/model/index.ts";
import { guardedFetch, type Dialer, type NetPolicy } from "../../src/net/index.ts";

/** A dialer that fails when it is called, because the guard must reject a request before it sends anything. */
const noDialer: Dialer = {
  resolve: () => Promise.reject(new Error("was resolved")),
  fetch: () => Promise.reject(new Error("was called")),
};

/** Creates a dialer that resolves to these addresses, and answers instead of the network. */
function dialerTo(addresses: readonly string[], called: string[] = []): Dialer {
  return {
    resolve: async () => addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    fetch: async (url, pinned) => {
      called.push(`${url.href} ${pinned.map(({ address }) => address).join()}`);
      return new Response("answer");
    },
  };
}

async function errorOf(work: Promise<unknown>): Promise<A2AError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof A2AError)) throw new Error(`No A2AError but ${String(error)}`);
  return error;
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serverOn(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const near: NetPolicy = { allowPrivate: true };

describe("an address is rejected", () => {
  it.each([
    ["not a URL", "not a url", "not an absolute URL"],
    ["empty", "", "not an absolute URL"],
    ["relative", "/hook", "not an absolute URL"],
    ["of a file", "file:///etc/passwd", "file:"],
    ["of another protocol", "gopher://example.com:70/", "gopher:"],
    ["with a user name", "https://user@example.com/", "user name"],
    ["with a password", "https://:secret@example.com/", "user name or password"],
    ["of a mail server", "http://example.com:25/", "port 25"],
    ["of SSH", "https://example.com:22/", "port 22"],
    ["loopback", "http://127.0.0.1:4000/", "loopback"],
    ["loopback in decimal", "http://2130706433/", "127.0.0.1 is a loopback"],
    ["loopback in octal", "http://0177.0.0.1/", "127.0.0.1 is a loopback"],
    ["loopback in hexadecimal", "http://0x7f000001/", "127.0.0.1 is a loopback"],
    ["loopback in short form", "http://127.1/", "127.0.0.1 is a loopback"],
    ["loopback in full-width digits", "http://１２７.０.０.１/", "127.0.0.1 is a loopback"],
    ["loopback with a dot at its end", "http://127.0.0.1./", "127.0.0.1 is a loopback"],
    ["loopback with two dots at its end", "http://127.0.0.1..:4000/", "127.0.0.1 is a loopback"],
    ["loopback in short form with two dots at its end", "http://127.1../", "127.0.0.1 is a loopback"],
    ["localhost with two dots at its end", "http://localhost../", "internal network"],
    ["the metadata service of a cloud", "http://169.254.169.254/latest/meta-data/", "link-local"],
    ["private", "http://10.1.2.3/", "private"],
    ["unspecified", "http://0.0.0.0:8080/", "unspecified"],
    ["IPv6 loopback", "http://[::1]:4000/", "loopback"],
    ["loopback, mapped to IPv6", "http://[::ffff:127.0.0.1]/", "loopback"],
    ["the metadata service of a cloud, mapped to IPv6", "http://[::ffff:a9fe:a9fe]/", "link-local"],
    ["IPv6 private", "http://[fd00::1]/", "private"],
    ["multicast", "http://[ff02::1]/", "multicast"],
    ["localhost", "http://localhost:4000/", "internal network"],
    ["LOCALHOST.", "http://LOCALHOST.:4000/", "internal network"],
    ["below localhost", "http://a.localhost/", "internal network"],
    ["below local", "http://printer.local/", "internal network"],
    ["below internal", "http://metadata.google.internal/", "internal network"],
    ["below home.arpa", "http://nas.home.arpa/", "internal network"],
    ["of a single label", "http://redis:6379/", "internal network"],
  ])("that is %s", async (_name, url, reason) => {
    for (const dialer of [noDialer, undefined]) {
      const error = await errorOf(guardedFetch({}, dialer)(url));
      expect(error.code).toBe("InvalidParams");
      expect(error.message).toContain(reason);
    }
  });

  it("when one of the addresses of its host name is not public", async () => {
    const called: string[] = [];
    const fetch = guardedFetch({}, dialerTo(["8.8.8.8", "10.0.0.7"], called));
    const error = await errorOf(fetch("https://example.com/"));
    expect(error.code).toBe("InvalidParams");
    expect(called).toEqual([]);
  });

  it("with the address of the host name in the cause of the error, and not in its message", async () => {
    const error = await errorOf(guardedFetch({}, dialerTo(["10.0.0.7"]))("https://db.example.com/"));
    expect(error.message).not.toContain("10.0.0.7");
    expect((error.cause as Error).message).toContain("10.0.0.7");
  });

  it("when its host name resolves to an invalid address", async () => {
    const error = await errorOf(guardedFetch({}, dialerTo(["nonsense"]))("https://example.com/"));
    expect(error.code).toBe("InvalidParams");
  });

  it("when the policy does not allow its protocol or port", async () => {
    const fetch = guardedFetch({ protocols: ["https:"], ports: [443] }, noDialer);
    expect((await errorOf(fetch("http://example.com/"))).message).toContain("http:");
    expect((await errorOf(fetch("https://example.com:8443/"))).message).toContain("port 8443");
  });

  it("when it is a multicast address, even if loopback, private and link-local addresses are allowed", async () => {
    const error = await errorOf(guardedFetch(near, noDialer)("http://224.0.0.1/"));
    expect(error.message).toContain("multicast");
  });
});

describe("an address passes", () => {
  it("when all addresses of its host name are public, and only these are called", async () => {
    const called: string[] = [];
    const fetch = guardedFetch({}, dialerTo(["8.8.8.8", "2606:4700::1111"], called));
    expect(await (await fetch("https://Example.com.:8443/hook?x=1")).text()).toBe("answer");
    expect(called).toEqual(["https://example.com:8443/hook?x=1 8.8.8.8,2606:4700::1111"]);
  });

  it("when it is a public IP address, without a DNS look-up", async () => {
    const called: string[] = [];
    const dialer = { ...dialerTo([], called), resolve: noDialer.resolve };
    await guardedFetch({}, dialer)("https://[2606:4700::1111]/");
    await guardedFetch({}, dialer)("https://8.8.8.8/");
    expect(called).toEqual(["https://[2606:4700::1111]/ 2606:4700::1111", "https://8.8.8.8/ 8.8.8.8"]);
  });

  it.each([
    ["localhost", "http://localhost:25/"],
    ["LocalHost:4000", "http://localhost:4000/"],
    ["10.0.0.7", "http://10.0.0.7/"],
    ["::1", "http://[::1]:4000/"],
    ["[::1]:4000", "http://[::1]:4000/"],
    ["hooks.internal:443", "https://hooks.internal/"],
  ])("when the policy allows %s", async (entry, url) => {
    const called: string[] = [];
    await guardedFetch({ allow: [entry] }, dialerTo(["10.0.0.7"], called))(url);
    expect(called).toHaveLength(1);
  });

  it("only with the port that the policy allows", async () => {
    const error = await errorOf(guardedFetch({ allow: ["localhost:4000"] }, noDialer)("http://localhost:4001/"));
    expect(error.code).toBe("InvalidParams");
  });
});

describe("a header is rejected", () => {
  it.each([
    ["x-token", "secret\r\nx-evil: 1"],
    ["x-token", "secret\nx-evil: 1"],
    ["x-token", "a\0b"],
    ["x-token", "☃"],
    ["x-evil: 1\r\nx", "a"],
    ["", "a"],
    ["Host", "internal"],
    ["content-length", "0"],
    ["Transfer-Encoding", "chunked"],
    ["connection", "upgrade"],
  ])("%j: %j", async (name, value) => {
    const fetch = guardedFetch({}, noDialer);
    const error = await errorOf(fetch("https://example.com/", { headers: { [name]: value } }));
    expect(error.code).toBe("InvalidParams");
    expect(error.message).not.toContain("secret");
  });
});

describe("a guarded call", () => {
  it("sends the request and returns the answer", async () => {
    const url = await serverOn((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => {
        response.writeHead(201, { "x-seen": `${request.method} ${String(request.headers["x-token"])}` }).end(body);
      });
    });
    const fetch = guardedFetch(near);
    const answer = await fetch(url, { method: "POST", headers: { "x-token": "t" }, body: "héllo" });
    expect([answer.status, answer.headers.get("x-seen"), await answer.text()]).toEqual([201, "POST t", "héllo"]);
  });

  it("follows no redirect", async () => {
    let asked = 0;
    const url = await serverOn((_request, response) => {
      asked++;
      response.writeHead(302, { location: "/elsewhere" }).end();
    });
    const answer = await guardedFetch(near)(url);
    expect([answer.status, asked]).toEqual([302, 1]);
  });

  it("rejects an answer whose content-length is too large", async () => {
    const url = await serverOn((_request, response) => response.end("x".repeat(2000)));
    const error = await errorOf(guardedFetch({ ...near, maxBytes: 1000 })(url));
    expect(error.code).toBe("InvalidResponse");
  });

  it("stops reading an answer that grows too large", async () => {
    let stopped!: () => void;
    const gone = new Promise<void>((resolve) => (stopped = resolve));
    const url = await serverOn((_request, response) => {
      response.on("close", stopped);
      const more = (): void => {
        while (!response.destroyed && response.write("x".repeat(1000)));
      };
      response.on("drain", more);
      more();
    });
    const answer = await guardedFetch({ ...near, maxBytes: 100_000 })(url);
    const error = await errorOf(answer.text());
    expect([error.code, error.message]).toEqual(["InvalidResponse", "The answer is larger than 100000 bytes"]);
    await gone;
  });

  it("ends when its timeout passes before the answer", async () => {
    const url = await serverOn(() => {});
    const error = await errorOf(guardedFetch({ ...near, timeout: 20 })(url));
    expect(error.code).toBe("Timeout");
  });

  it("ends when its timeout passes within the answer", async () => {
    const url = await serverOn((_request, response) => response.write("half"));
    const answer = await guardedFetch({ ...near, timeout: 200 })(url);
    expect((await errorOf(answer.text())).code).toBe("Timeout");
  });

  it("ends when its timeout passes before the DNS look-up ends", async () => {
    const dialer: Dialer = { ...noDialer, resolve: () => new Promise(() => {}) };
    const error = await errorOf(guardedFetch({ timeout: 20 }, dialer)("https://example.com/"));
    expect(error.code).toBe("Timeout");
  });

  it("ends when the caller aborts it, before and after its start", async () => {
    const url = await serverOn(() => {});
    const early = await errorOf(guardedFetch(near)(url, { signal: AbortSignal.abort() }));
    const controller = new AbortController();
    const late = errorOf(guardedFetch(near)(url, { signal: controller.signal }));
    controller.abort();
    expect([early.code, (await late).code]).toEqual(["Aborted", "Aborted"]);
  });

  it("says that no server answered", async () => {
    const url = await serverOn(() => {});
    await new Promise((resolve) => servers.splice(0)[0]?.close(resolve));
    expect((await errorOf(guardedFetch(near)(url))).code).toBe("ConnectionFailed");
    const dialer: Dialer = { ...noDialer, resolve: async () => [] };
    expect((await errorOf(guardedFetch({}, dialer)("https://example.com/"))).code).toBe("ConnectionFailed");
  });
});

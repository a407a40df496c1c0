import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { delimiter } from "node:path";
import { reservePort } from "../ports.ts";
import { tie, until } from "./tie.ts";

/** Debian has servers where only the administrator's `PATH` looks. */
const withSystemPrograms = { ...process.env, PATH: `${process.env["PATH"] ?? ""}${delimiter}/usr/sbin` };

/** A NATS server of its own. */
export interface NatsServer {
  /** Its URL. The port stays the same after a restart. */
  readonly url: string;
  start(): Promise<void>;
  /** Ends it at once. */
  stop(): Promise<void>;
}

/** Starts a server, with more options of its command line: the program `NATS_SERVER`, else `nats-server` of `PATH`. If there is none, it rejects. */
export async function startNats(wanted?: number, more: readonly string[] = []): Promise<NatsServer> {
  const port = wanted ?? (await reservePort());
  const program = process.env["NATS_SERVER"] ?? "nats-server";
  let child: ChildProcess | undefined;
  let letGo: (() => void) | undefined;
  const kill = (): void => void child?.kill("SIGKILL");
  const server: NatsServer = {
    url: `nats://127.0.0.1:${port}`,
    async start() {
      process.once("exit", kill);
      const started = (child = spawn(program, ["-a", "127.0.0.1", "-p", String(port), ...more], {
        stdio: "ignore",
        env: withSystemPrograms,
      }));
      let failed: unknown;
      started.once("error", (error) => (failed = error));
      letGo = tie(started.pid, "KILL");
      await until(
        async () => {
          const isThere = await accepts(port);
          // Another program may have the port.
          if (failed !== undefined || started.exitCode !== null || started.signalCode !== null) {
            throw new Error("There is no nats-server. Debian has it in its package nats-server", { cause: failed });
          }
          return isThere;
        },
        () => "nats-server does not accept connections",
      );
    },
    async stop() {
      process.off("exit", kill);
      if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      letGo?.();
    },
  };
  await server.start();
  return server;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

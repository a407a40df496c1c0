import { Option } from "commander";
import type { ConformOptions } from "../conform.ts";
import { callOptions, collect, count, url, type Program, receiverUrl } from "../options.ts";

export function addConform({ io, command, finish }: Program): void {
  callOptions(
    command("conform", {
      summary: "Test whether a server keeps to the protocol",
      description:
        "Runs declarative tests (ACTS) over each binding that the card names, and reports what does not hold: level, section, expected, got. By default it runs the tests that any agent can answer, in a few seconds. Other tests need an agent made for them, with the behaviors of ACTS §11: they run with --acts, or if the card offers the behavior as a skill. Exits with 0 if every MUST that was asked holds, with 1 if one does not or none was asked. The verdict counts what was not asked, with the reasons.",
      examples: [
        "parley conform http://localhost:4000",
        "parley conform http://localhost:4000 --level must --filter 'CARD-*'",
        "parley conform http://localhost:4000 --json --junit conform.xml",
      ],
    })
      .argument(...url)
      .option("--acts [path]", "the agent is made for ACTS: run every test; with a path, those of this file or folder")
      .option("--protocol <version>", "only tests of this version of A2A, such as 1.0")
      .addOption(
        new Option("--level <level>", "only tests of this level and higher ones").choices(["must", "should", "may"]),
      )
      .option("--filter <pattern>", "only tests or suites with this id; * stands for any text; repeatable", collect)
      .option("--tag <tag>", "only tests with this tag; repeatable", collect)
      .option(
        "--behaviors <prefixes>",
        "test behaviors that the agent has, separated by commas, or all, or none; default: those that the card offers, with --acts all",
      )
      .option("--var <name=value>", "sets a variable of the tests; repeatable", collect)
      .option("--other-token <token>", "bearer token of a second caller, to test that tasks are private")
      .option(
        "--webhook <url>",
        "URL at which the server reaches this machine; default: a free port of 127.0.0.1",
        receiverUrl,
      )
      .option("--client <file>", "a module whose default export is the client of a custom binding; repeatable", collect)
      .option("--timeout <seconds>", "time limit of one step", count(1, 3600), 30)
      .option("--time-limit <minutes>", "time limit of the whole run", count(1, 1440), 30)
      .option("--concurrency <n>", "number of tests that run at a time", count(1, 64), 4)
      .option("--junit <file>", "also write a JUnit report"),
  ).action(async (at: string, options: ConformOptions) => {
    // Loaded here, so that other commands start without the runner and its YAML parser.
    const { conform } = await import("../conform.ts");
    finish(await conform(io, at, options));
  });
}

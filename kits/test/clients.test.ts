import { expect, test } from "vitest";
import { testClient } from "../clients.ts";

const file = `
suites:
  - tests:
      - id: A
        level: must
        steps:
          - client_response: { operation: get_task, wire_payload: { jsonrpc: "2.0", result: { id: t, status: { state: TASK_STATE_WORKING } } } }
            expect_parsed: { id: t, status: { state: TASK_STATE_WORKING } }
          - client_response: { operation: send_message, wire_payload: { jsonrpc: "2.0", error: { code: -32001, message: It is not found } } }
            expect_parsed: { error: { code: -32001, message: { contains: not found } } }
      - id: B
        level: should
        steps:
          - client_response: { operation: get_task, wire_payload: { jsonrpc: "2.0", result: { id: t, status: { state: TASK_STATE_WORKING } } } }
            expect_parsed: { history: { count_gte: 1 } }
      - id: C
        level: may
        tags: [runner-special]
        steps: []
      - id: CLIENT-CAP-001
        level: should
        tags: [runner-special]
        steps:
          - client_response: { operation: get_agent_card, wire_payload: { capabilities: { streaming: false } } }
            expect_parsed: {}
      - id: CLIENT-CAP-001
        level: should
        tags: [runner-special]
        steps:
          - client_response: { operation: get_agent_card, wire_payload: { capabilities: { streaming: true } } }
            expect_parsed: {}
`;

test("our client reads the answers of an ACTS file, and the report has a result for each test", async () => {
  expect(await testClient(file)).toEqual({
    reports: [
      {
        transport: "jsonrpc",
        suites: [
          {
            tests: [
              { id: "A", level: "must", result: "pass" },
              {
                id: "B",
                level: "should",
                result: "fail",
                failure: { message: '.history: undefined is not {"count_gte":1}' },
              },
              { id: "C", level: "may", result: "skip", skip_reason: "describes its check only in prose" },
              { id: "CLIENT-CAP-001", level: "should", result: "pass" },
              {
                id: "CLIENT-CAP-001",
                level: "should",
                result: "fail",
                failure: { message: "the client calls an operation that the card does not declare" },
              },
            ],
          },
        ],
      },
    ],
  });
});

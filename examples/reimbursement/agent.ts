import { data, defineAgent, text } from "@parley/node";
import { Expense, formAfter, free } from "./form.ts";

export default defineAgent<{ state: Expense }>({
  name: "Reimbursement Agent",
  description:
    "This agent handles the reimbursement process for the employees given the amount and purpose of the reimbursement.",
  version: "1.0.0",
  skills: [
    {
      id: "process_reimbursement",
      name: "Process Reimbursement Tool",
      description: "Helps with the reimbursement process for users given the amount and purpose of the reimbursement.",
      tags: ["reimbursement"],
      examples: ["Can you reimburse me $20 for my lunch with the clients?"],
    },
  ],
  defaultInputModes: ["text/plain", "application/json"],
  defaultOutputModes: ["text/plain", "application/json"],
  resumable: true,
  async *onMessage(turn) {
    const ask = [text("Please fill in the form."), data({ form: formAfter(turn.text) })];
    const waiting = turn.state();
    const expense = waiting ?? (await turn.data(Expense, { ask }));
    if (expense.amount > free && waiting === undefined) {
      turn.setState(expense);
      yield turn.inputRequired(`${expense.amount} is more than ${free}. Who has approved it?`);
      return;
    }
    const approvedBy = waiting && turn.text;
    yield turn.artifact({ name: "reimbursement", parts: [data({ ...expense, approvedBy, status: "paid" })] });
  },
});

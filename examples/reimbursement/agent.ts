import { data, defineAgent, text } from "@parley/a2a";
import { Expense, form, free } from "./form.ts";

export default defineAgent<{ state: Expense }>({
  name: "Reimbursement",
  description: "Pays back what you have paid for the company.",
  version: "1.0.0",
  skills: [
    { id: "reimburse", name: "Reimburse", description: "Takes a form with an expense", tags: ["form", "money"] },
  ],
  defaultInputModes: ["text/plain", "application/json"],
  defaultOutputModes: ["text/plain", "application/json"],
  resumable: true,
  async *onMessage(turn) {
    const ask = [text("Please fill in the form."), data({ form })];
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

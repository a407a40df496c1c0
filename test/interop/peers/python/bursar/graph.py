"""The guide agent of examples/langgraph, for LangGraph's own A2A server."""

from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent
from langgraph.types import interrupt
from model import ScriptedModel

payments = {}


@tool
def invoice(number: int) -> dict:
    """Finds an invoice by its number"""
    return {"number": number, "amount": number * 10, "currency": "CHF"}


@tool
def pay(number: int, amount: int) -> dict | str:
    """Pays an invoice"""
    if interrupt(f"Pay CHF {amount} for invoice {number}?") != "yes":
        return "The user has refused."
    return payments.setdefault(number, {"receipt": len(payments) + 1})


graph = create_react_agent(
    ScriptedModel(),
    [invoice, pay],
    prompt="You are a bursar. Look up the invoice, pay it, and tell the receipt.",
)

"""Stands in for a model: the same conversation always gets the same answer."""

import re
from uuid import uuid4
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult


def call(name, **args):
    return AIMessage(content="", tool_calls=[{"id": str(uuid4()), "name": name, "args": args}])


def answer(messages):
    last = max(at for at, message in enumerate(messages) if message.type == "human")
    number = int((re.findall(r"\d+", messages[last].text) or ["1"])[0])
    results = [message.text for message in messages[last:] if message.type == "tool"]
    if len(results) == 0:
        return call("invoice", number=number)
    if len(results) == 1:
        return call("pay", number=number, amount=number * 10)
    if "refused" in results[1]:
        return AIMessage("I have paid nothing.")
    return AIMessage(f"Invoice {number} is paid: {results[1]}")


class ScriptedModel(BaseChatModel):
    @property
    def _llm_type(self):
        return "script"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **options):
        return ChatResult(generations=[ChatGeneration(message=answer(messages))])

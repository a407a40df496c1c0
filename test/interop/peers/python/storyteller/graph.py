"""The agent of LangGraph's server, with a scripted model."""

from typing import Annotated, TypedDict
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


async def answer(state: State) -> State:
    said = state["messages"][-1].content
    words = said if isinstance(said, str) else "".join(part.get("text", "") for part in said)
    model = GenericFakeChatModel(messages=iter([AIMessage(content=f"The rain came over {words}.")]))
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = StateGraph(State).add_node("answer", answer).add_edge(START, "answer").add_edge("answer", END).compile()

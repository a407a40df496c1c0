"""The Traceability extension, implemented like the Python samples, on the SDK 0.3.

traceability_v03.py serve METADATA|ARTIFACT: an agent that gives its steps,
in metadata of its last status as the currency agent does, or as a text of
its artifact as the host of several agents does.
traceability_v03.py call URL: a client that reads the tools an agent used.
"""

import asyncio
import datetime
import json
import socket
import sys
import uuid

import httpx
import uvicorn
from a2a.client import ClientConfig, ClientFactory
from a2a.client.helpers import create_text_message_object
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AFastAPIApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    Part,
    TaskState,
    TextPart,
)
from a2a.utils import new_task
from fastapi import FastAPI

from lines import end_with_parent, run, say, step

PATH = 'github.com/a2aproject/a2a-samples/extensions/traceability/v1'
URI = f'https://{PATH}'
KEY = f'{PATH}/traceability'


def record(trace, call_type, name, step_type, **more):
    """Adds a step with all members of the sample."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    trace['steps'].append(
        {
            'step_id': f'step-{uuid.uuid4()}',
            'trace_id': trace['trace_id'],
            'parent_step_id': None,
            'call_type': call_type,
            'name': name,
            'parameters': None,
            'requests': None,
            'step_type': step_type,
            'cost': None,
            'total_tokens': None,
            'additional_attributes': {},
            'latency': 0,
            'start_time': now,
            'end_time': now,
            'error': None,
            **more,
        }
    )


def text(words):
    return Part(root=TextPart(text=words))


class Agent(AgentExecutor):
    def __init__(self, place):
        self.place = place

    async def execute(self, context, queue):
        trace = None
        if URI in context.requested_extensions:
            context.add_activated_extension(URI)
            trace = {'trace_id': f'trace-{uuid.uuid4()}', 'steps': []}
            rate = {'base': 'USD', 'symbols': 'EUR'}
            record(trace, 'TOOL', 'get_rate', 'tool_call', parameters=rate)
            answer = {'response': {'EUR': 0.859}}
            record(
                trace, 'TOOL', 'get_rate', 'tool_response', parameters=answer
            )
            record(trace, 'HOST', 'host', 'ending', total_tokens=42)
        task = context.current_task or new_task(context.message)
        await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        parts = [text('0.859')]
        if trace and self.place == 'ARTIFACT':
            parts.append(text(json.dumps(trace)))
        await updater.add_artifact(parts, name='rate')
        in_metadata = trace and self.place == 'METADATA'
        await updater.update_status(
            TaskState.completed,
            updater.new_agent_message([text('Done')]),
            metadata={KEY: trace} if in_metadata else {},
            final=True,
        )

    async def cancel(self, context, queue):
        raise NotImplementedError


async def serve(place):
    web = socket.socket()
    web.bind(('127.0.0.1', 0))
    base = f'http://127.0.0.1:{web.getsockname()[1]}'
    extension = AgentExtension(
        uri=URI, description='Adds traceability information to artifacts.'
    )
    card = AgentCard(
        name='Python traces',
        description='Knows a rate',
        version='1.0.0',
        protocol_version='0.3.0',
        url=f'{base}/',
        preferred_transport='JSONRPC',
        capabilities=AgentCapabilities(
            streaming=True, extensions=[extension]
        ),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[],
    )
    handler = DefaultRequestHandler(
        agent_executor=Agent(place), task_store=InMemoryTaskStore()
    )
    app = FastAPI()
    A2AFastAPIApplication(
        agent_card=card, http_handler=handler
    ).add_routes_to_app(app, rpc_url='/')
    web.listen()
    say('ready', result=base)
    end_with_parent()
    config = uvicorn.Config(app, log_level='error')
    await uvicorn.Server(config).serve(sockets=[web])


@step
async def trajectory(url):
    """The tools that the agent called, according to its task."""
    headers = {'x-a2a-extensions': URI}
    async with httpx.AsyncClient(headers=headers, timeout=30) as http:
        config = ClientConfig(httpx_client=http)
        client = await ClientFactory.connect(url, client_config=config)
        message = create_text_message_object(content='USD')
        events = [event async for event in client.send_message(message)]
        task = events[-1][0]
        trace = (task.metadata or {})[KEY]
        return {
            'trace': trace,
            'tools': [
                [each['name'], each['parameters']]
                for each in trace['steps']
                if each['step_type'] == 'tool_call'
            ],
        }


if sys.argv[1] == 'serve':
    asyncio.run(serve(sys.argv[2]))
else:
    asyncio.run(run(lambda error: type(error).__name__, sys.argv[2]))

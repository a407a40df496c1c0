"""The Timestamp extension, implemented like the Python sample, on the SDK 1.x.

timestamp_v1.py serve SECONDS: an agent that stamps what it says.
timestamp_v1.py call URL SECONDS: a client that stamps what it sends.
SECONDS is what the clock says, since the Unix epoch.
"""

import asyncio
import datetime
import socket
import sys

import httpx
import uvicorn
from a2a.client import (
    A2ACardResolver,
    ClientCallInterceptor,
    ClientConfig,
    ClientFactory,
)
from a2a.client.client import ClientCallContext
from a2a.client.service_parameters import (
    ServiceParametersFactory,
    with_a2a_extensions,
)
from a2a.extensions.common import find_extension_by_uri
from a2a.server.agent_execution import AgentExecutor
from a2a.server.events.event_queue import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
)
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from starlette.applications import Starlette

from lines import end_with_parent, run, say, step

PATH = 'github.com/a2aproject/a2a-samples/extensions/timestamp/v1'
URI = f'https://{PATH}'
KEY = f'{PATH}/timestamp'


def stamp(thing, seconds):
    if KEY in thing.metadata:
        return
    time = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    thing.metadata[KEY] = time.isoformat()


def said_in(event):
    """The agent's messages and artifacts in an event."""
    if isinstance(event, Message):
        return [event]
    if isinstance(event, TaskArtifactUpdateEvent):
        return [event.artifact]
    if isinstance(event, TaskStatusUpdateEvent):
        return messages_of(event.status)
    if isinstance(event, Task):
        own = [each for each in event.history if each.role == Role.ROLE_AGENT]
        return [*event.artifacts, *own, *messages_of(event.status)]
    return []


def messages_of(status):
    return [status.message] if status.HasField('message') else []


class StampingQueue(EventQueue):
    def __init__(self, queue, seconds):
        self.queue = queue
        self.seconds = seconds

    async def enqueue_event(self, event):
        for thing in said_in(event):
            stamp(thing, self.seconds)
        await self.queue.enqueue_event(event)


class Agent(AgentExecutor):
    """Reports the stamp of the message, and stamps its answer on request."""

    def __init__(self, seconds):
        self.seconds = seconds

    async def execute(self, context, queue):
        if URI in context.requested_extensions:
            queue = StampingQueue(queue, self.seconds)
        received = context.message
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            ids = {'id': context.task_id, 'context_id': context.context_id}
            task = Task(status=status, history=[received], **ids)
            await queue.enqueue_event(task)
        updater = TaskUpdater(queue, context.task_id, context.context_id)

        def message(text):
            return updater.new_agent_message([Part(text=text)])

        await updater.start_work(message('working'))
        has = KEY in received.metadata
        heard = received.metadata[KEY] if has else 'no stamp'
        await updater.add_artifact([Part(text=heard)], name='heard')
        await updater.complete(message('done'))

    async def cancel(self, context, queue):
        raise NotImplementedError


async def serve(seconds):
    web = socket.socket()
    web.bind(('127.0.0.1', 0))
    base = f'http://127.0.0.1:{web.getsockname()[1]}'
    extension = AgentExtension(
        uri=URI, description='Adds timestamps to messages and artifacts.'
    )
    card = AgentCard(
        name='Python stamps',
        description='Stamps what it says',
        version='1.0.0',
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        capabilities=AgentCapabilities(
            streaming=True, extensions=[extension]
        ),
        supported_interfaces=[
            AgentInterface(
                protocol_binding='JSONRPC', protocol_version='1.0', url=base
            )
        ],
    )
    handler = DefaultRequestHandler(
        agent_executor=Agent(seconds),
        task_store=InMemoryTaskStore(),
        agent_card=card,
    )
    routes = [
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, rpc_url='/'),
    ]
    web.listen()
    say('ready', result=base)
    end_with_parent()
    config = uvicorn.Config(Starlette(routes=routes), log_level='error')
    await uvicorn.Server(config).serve(sockets=[web])


class Stamping(ClientCallInterceptor):
    def __init__(self, seconds):
        self.seconds = seconds

    async def before(self, args):
        supported = find_extension_by_uri(args.agent_card, URI) is not None
        if not supported or not isinstance(args.input, SendMessageRequest):
            return
        stamp(args.input.message, self.seconds)
        args.context = args.context or ClientCallContext()
        parameters = args.context.service_parameters
        args.context.service_parameters = ServiceParametersFactory.create_from(
            parameters, [with_a2a_extensions([URI])]
        )

    async def after(self, args):
        return None


@step
async def stamps(url, seconds):
    """Every stamp of a streamed answer, in the order of its events."""
    async with httpx.AsyncClient(timeout=30) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        config = ClientConfig(httpx_client=http, streaming=True)
        client = ClientFactory(config).create(card, [Stamping(seconds)])
        message = Message(
            role=Role.ROLE_USER,
            message_id='stamped',
            parts=[Part(text='hi')],
        )
        found = []
        request = SendMessageRequest(message=message)
        async for chunk in client.send_message(request):
            kind = chunk.WhichOneof('payload')
            if kind == 'artifact_update':
                found.append(chunk.artifact_update.artifact)
            elif kind == 'status_update':
                found.extend(messages_of(chunk.status_update.status))
        return {
            'stamps': [
                each.metadata[KEY] if KEY in each.metadata else None
                for each in found
            ],
            'texts': [each.parts[0].text for each in found],
        }


if sys.argv[1] == 'serve':
    asyncio.run(serve(float(sys.argv[2])))
else:
    arguments = (sys.argv[2], float(sys.argv[3]))
    asyncio.run(run(lambda error: type(error).__name__, *arguments))

"""The Python SDK 0.3 as a server, over JSON-RPC, REST and gRPC."""

import asyncio
import base64
import copy
import socket
import sys

import grpc
import httpx
import uvicorn
from a2a.grpc import a2a_pb2_grpc
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import (
    A2AFastAPIApplication,
    A2ARESTFastAPIApplication,
)
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
    TextPart,
)
from fastapi import FastAPI

from lines import end_with_parent, say


class Agent(AgentExecutor):
    async def execute(self, context, queue):
        words = context.message.parts[0].root.text
        task = TaskUpdater(queue, context.task_id, context.context_id)

        def message(text):
            return task.new_agent_message([Part(root=TextPart(text=text))])

        if words == 'message':
            await queue.enqueue_event(message('direct'))
            return
        if words == 'bytes':
            file = context.message.parts[1].root.file
            size = len(base64.b64decode(file.bytes))
            await queue.enqueue_event(message(str(size)))
            return
        if context.current_task is None:
            await queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=TaskStatus(state=TaskState.submitted),
                    history=[context.message],
                )
            )
        if words == 'ask':
            await task.requires_input(message('more'), final=True)
            return
        await task.start_work()
        if words == 'fail':
            await task.failed(message('failed'))
            return
        if words == 'hold':
            await asyncio.Event().wait()
        received = context.message.parts
        await task.add_artifact(
            received[1:] if words == 'parts' else received, name='echo'
        )
        await task.complete()

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def push_options():
    """Webhooks, if enabled for the server."""
    if 'push' not in sys.argv:
        return {}
    store = InMemoryPushNotificationConfigStore()
    sender = BasePushNotificationSender(httpx.AsyncClient(), store)
    return {'push_config_store': store, 'push_sender': sender}


async def main():
    web = socket.socket()
    web.bind(('127.0.0.1', 0))
    base = f'http://127.0.0.1:{web.getsockname()[1]}'
    server = grpc.aio.server()
    target = f'127.0.0.1:{server.add_insecure_port("127.0.0.1:0")}'
    modes = ['text/plain', 'application/json', 'application/octet-stream']
    echo = AgentSkill(
        id='echo', name='Echo', description='Says it again', tags=['echo']
    )
    card = AgentCard(
        name='Python 0.3',
        description='Does what it is told',
        version='1.0.0',
        protocol_version='0.3.0',
        url=f'{base}/rpc',
        preferred_transport='JSONRPC',
        additional_interfaces=[
            AgentInterface(transport='JSONRPC', url=f'{base}/rpc'),
            AgentInterface(transport='HTTP+JSON', url=f'{base}/rest'),
            AgentInterface(transport='GRPC', url=target),
        ],
        capabilities=AgentCapabilities(
            streaming=True, push_notifications='push' in sys.argv
        ),
        default_input_modes=modes,
        default_output_modes=modes,
        skills=[echo],
        supports_authenticated_extended_card=True,
    )
    extended = copy.deepcopy(card)
    extended.description = 'For anyone'
    handler = DefaultRequestHandler(
        agent_executor=Agent(),
        task_store=InMemoryTaskStore(),
        **push_options(),
    )
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(
        GrpcHandler(card, handler), server
    )
    await server.start()
    app = FastAPI()
    A2AFastAPIApplication(
        agent_card=card, http_handler=handler, extended_agent_card=extended
    ).add_routes_to_app(app, rpc_url='/rpc')
    rest = A2ARESTFastAPIApplication(
        agent_card=card, http_handler=handler, extended_agent_card=extended
    )
    app.mount('/rest', rest.build())
    web.listen()
    say('ready', result=base)
    end_with_parent()
    config = uvicorn.Config(app, log_level='error')
    await uvicorn.Server(config).serve(sockets=[web])


asyncio.run(main())

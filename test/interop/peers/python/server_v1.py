"""The Python SDK 1.x as a server: 1.0 and 0.3, JSON-RPC, REST and gRPC."""

import asyncio
import copy
import socket
import sys

import grpc
import httpx
import uvicorn
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
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
    StringList,
    Task,
    TaskState,
    TaskStatus,
    a2a_pb2_grpc,
)
from starlette.applications import Starlette

from guard import GrpcGuard, guarded
from lines import end_with_parent, say


class Agent(AgentExecutor):
    async def execute(self, context, queue):
        words = context.message.parts[0].text
        task = TaskUpdater(queue, context.task_id, context.context_id)

        def message(text):
            return task.new_agent_message([Part(text=text)])

        if words == 'message':
            await queue.enqueue_event(message('direct'))
            return
        if words == 'bytes':
            size = len(context.message.parts[1].raw)
            await queue.enqueue_event(message(str(size)))
            return
        if context.current_task is None:
            submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=submitted,
                    history=[context.message],
                )
            )
        if words == 'ask':
            await task.requires_input(message('more'))
            return
        await task.start_work()
        if words == 'fail':
            await task.failed(message('failed'))
            return
        if words == 'hold':
            await asyncio.Event().wait()
        received = list(context.message.parts)
        if words == 'traceparent':
            received = [Part(text=traceparent(context.call_context.state))]
        await task.add_artifact(
            received[1:] if words == 'parts' else received, name='echo'
        )
        await task.complete()

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def traceparent(state):
    """The request's header, as the SDK passes it to agents."""
    if 'headers' in state:
        return state['headers'].get('traceparent', '')
    metadata = state['grpc_context'].invocation_metadata()
    return dict(metadata).get('traceparent', '')


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
    is_guarded = 'guarded' in sys.argv
    guards = [GrpcGuard()] if is_guarded else []
    current, compat = [grpc.aio.server(interceptors=guards) for _ in range(2)]
    targets = [
        f'127.0.0.1:{server.add_insecure_port("127.0.0.1:0")}'
        for server in (current, compat)
    ]
    interfaces = [
        AgentInterface(protocol_binding=binding, protocol_version=v, url=url)
        for v, target in zip(('1.0', '0.3'), targets)
        for binding, url in (
            ('JSONRPC', f'{base}/rpc'),
            ('HTTP+JSON', f'{base}/rest'),
            ('GRPC', target),
        )
    ]
    modes = ['text/plain', 'application/json', 'application/octet-stream']
    echo = AgentSkill(
        id='echo', name='Echo', description='Says it again', tags=['echo']
    )
    card = AgentCard(
        name='Python 1',
        description='Does what it is told',
        version='1.0.0',
        capabilities=AgentCapabilities(
            streaming=True,
            extended_agent_card=True,
            push_notifications='push' in sys.argv,
        ),
        default_input_modes=modes,
        default_output_modes=modes,
        skills=[echo],
        supported_interfaces=interfaces,
    )
    if is_guarded:
        card.security_schemes['bearer'].http_auth_security_scheme.scheme = (
            'Bearer'
        )
        key = card.security_schemes['key'].api_key_security_scheme
        key.location, key.name = 'header', 'X-API-Key'
        card.security_requirements.add(
            schemes={'bearer': StringList(), 'key': StringList()}
        )
    extended = copy.deepcopy(card)
    extended.description = 'For anyone'
    handler = DefaultRequestHandler(
        agent_executor=Agent(),
        task_store=InMemoryTaskStore(),
        agent_card=card,
        extended_agent_card=extended,
        **push_options(),
    )
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(
        GrpcHandler(handler), current
    )
    a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(
        CompatGrpcHandler(handler), compat
    )
    await current.start()
    await compat.start()
    app = Starlette(
        routes=[
            *create_jsonrpc_routes(
                request_handler=handler,
                rpc_url='/rpc',
                enable_v0_3_compat=True,
            ),
            *create_agent_card_routes(agent_card=card),
            *create_rest_routes(
                request_handler=handler,
                path_prefix='/rest',
                enable_v0_3_compat=True,
            ),
        ]
    )
    web.listen()
    say('ready', result=base)
    end_with_parent()
    config = uvicorn.Config(
        guarded(app) if is_guarded else app, log_level='error'
    )
    await uvicorn.Server(config).serve(sockets=[web])


asyncio.run(main())

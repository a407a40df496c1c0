"""A node of a cluster with the Python SDK, as its pages set it up: node.py URL.

Its tasks are in PostgreSQL, and subscriptions at another node poll for them. It prints its address, and ends with its standard input.
"""

import asyncio
import json
import os
import socket
import sys
import time

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.cluster import (
    DatabaseTaskEventStream,
    VersionedDatabaseTaskStore,
)
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
)
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette


class Agent(AgentExecutor):
    """The commands of servers/commands.ts that this case needs."""

    def __init__(self):
        self.bell = asyncio.Event()

    async def execute(self, context, queue):
        name, *rest = context.message.parts[0].text.split(' ')
        task = TaskUpdater(queue, context.task_id, context.context_id)
        if name == 'emit':
            self.bell.set()
            self.bell = asyncio.Event()
            await queue.enqueue_event(task.new_agent_message([Part(text='42')]))
            return
        await queue.enqueue_event(
            Task(
                id=context.task_id,
                context_id=context.context_id,
                status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                history=[context.message],
            )
        )
        await task.start_work()
        if name == 'task':
            await task.add_artifact([Part(text='The report is in order.')])
        else:
            await self.bell.wait()
            await self.pace(task, int(rest[0]), float(rest[1]) / 1000)
        await task.complete()

    async def pace(self, task, count, gap):
        start = time.time()
        for number in range(count):
            await asyncio.sleep(max(0, start + number * gap - time.time()))
            stamp = f'@{time.time() * 1000:.3f}@ {number}'
            await task.add_artifact(
                [Part(text=stamp)], artifact_id='a1', append=number > 0
            )

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def end_with_parent():
    def wait():
        sys.stdin.buffer.read()
        os._exit(0)

    asyncio.get_running_loop().run_in_executor(None, wait)


async def main():
    web = socket.socket()
    web.bind(('127.0.0.1', 0))
    base = f'http://127.0.0.1:{web.getsockname()[1]}'
    url = sys.argv[1].replace('postgres://', 'postgresql+asyncpg://', 1)
    engine = create_async_engine(url, pool_size=10)
    store = VersionedDatabaseTaskStore(engine)
    stream = DatabaseTaskEventStream(engine)
    await store.initialize()
    await stream.initialize()
    card = AgentCard(
        name='Python',
        description='Does what it is told',
        version='1.0.0',
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[
            AgentSkill(id='b', name='B', description='Benchmark', tags=['b'])
        ],
        supported_interfaces=[
            AgentInterface(
                protocol_binding='JSONRPC',
                protocol_version='1.0',
                url=f'{base}/rpc',
            )
        ],
    )
    handler = DefaultRequestHandler(
        agent_executor=Agent(),
        task_store=store,
        agent_card=card,
        event_stream=stream,
    )
    app = Starlette(routes=create_jsonrpc_routes(handler, '/rpc'))
    server = uvicorn.Server(uvicorn.Config(app, log_level='critical'))
    end_with_parent()
    print(json.dumps({'url': f'{base}/rpc'}), flush=True)
    await server.serve(sockets=[web])


asyncio.run(main())

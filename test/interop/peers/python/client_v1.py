"""The Python SDK 1.x as a client: client_v1.py URL BINDING VERSION [STEP]."""

import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from lines import alone, run, say, step
from reach import channel, verify


def message(words, parts=(), **more):
    return Message(
        role=Role.ROLE_USER,
        message_id=str(uuid.uuid4()),
        parts=[Part(text=words), *parts],
        **more,
    )


def state_of(task):
    return TaskState.Name(task.status.state).removeprefix('TASK_STATE_')


def texts(parts):
    return ''.join(part.text for part in parts)


def glance(event):
    kind = event.WhichOneof('payload')
    if kind == 'task':
        return f'task {state_of(event.task)}'
    if kind == 'status_update':
        return f'status {state_of(event.status_update)}'
    if kind == 'artifact_update':
        return f'artifact {texts(event.artifact_update.artifact.parts)}'
    return f'message {texts(event.message.parts)}'


async def send(client, words, parts=(), now=False, **more):
    request = SendMessageRequest(
        message=message(words, parts, **more),
        configuration=SendMessageConfiguration(return_immediately=now),
    )
    return [event async for event in client.send_message(request)]


async def task_of(client, words, **more):
    [event] = await send(client, words, **more)
    return event.task


async def until_working(client, words='hold'):
    """A held task, and the rest of its stream."""
    stream = client.send_message(SendMessageRequest(message=message(words)))
    async for event in stream:
        if event.HasField('task'):
            task = event.task
        if glance(event).endswith(' WORKING'):
            return task, stream
    raise RuntimeError('It ended before it worked')


@step
async def card(waiting, streaming, card):
    return {'name': card.name, 'skills': [skill.id for skill in card.skills]}


@step
async def send_and_wait(waiting, streaming, card):
    task = await task_of(waiting, 'echo hello')
    return {
        'state': state_of(task),
        'artifacts': [texts(artifact.parts) for artifact in task.artifacts],
    }


@step
async def send_and_go(waiting, streaming, card):
    task = await task_of(waiting, 'hold', now=True)
    await waiting.cancel_task(CancelTaskRequest(id=task.id))
    return state_of(task)


@step
async def reply(waiting, streaming, card):
    return [glance(event) for event in await send(waiting, 'message')]


@step
async def failure(waiting, streaming, card):
    task = await task_of(waiting, 'fail')
    return [state_of(task), texts(task.status.message.parts)]


@step
async def stream(waiting, streaming, card):
    return [glance(event) for event in await send(streaming, 'echo hello')]


@step
async def stream_reply(waiting, streaming, card):
    return [glance(event) for event in await send(streaming, 'message')]


@step
async def question(waiting, streaming, card):
    asked = await task_of(waiting, 'ask')
    answered = await task_of(
        waiting, 'echo it', task_id=asked.id, context_id=asked.context_id
    )
    task = await waiting.get_task(GetTaskRequest(id=asked.id))
    short = await waiting.get_task(
        GetTaskRequest(id=asked.id, history_length=1)
    )
    return {
        'states': [state_of(asked), state_of(answered)],
        'same': asked.id == answered.id,
        'history': [texts(each.parts) for each in task.history],
        'short': [texts(each.parts) for each in short.history],
    }


@step
async def question_streamed(waiting, streaming, card):
    return [glance(event) for event in await send(streaming, 'ask')]


@step
async def tasks(waiting, streaming, card):
    context = str(uuid.uuid4())
    for _ in range(3):
        await send(waiting, 'echo x', context_id=context)
    request = ListTasksRequest(context_id=context, page_size=2)
    first = await waiting.list_tasks(request)
    request.page_token = first.next_page_token
    second = await waiting.list_tasks(request)
    return {
        'pages': [len(first.tasks), len(second.tasks)],
        'total': first.total_size,
        'more': [bool(first.next_page_token), bool(second.next_page_token)],
    }


@step
async def cancel(waiting, streaming, card):
    task, rest = await until_working(streaming)
    canceled = await streaming.cancel_task(CancelTaskRequest(id=task.id))
    return {
        'state': state_of(canceled),
        'rest': [glance(event) async for event in rest],
    }


@step
async def subscribe(waiting, streaming, card):
    task, rest = await until_working(streaming)
    reader = streaming.subscribe(SubscribeToTaskRequest(id=task.id))
    first = await anext(reader)
    await streaming.cancel_task(CancelTaskRequest(id=task.id))
    return {
        'first': glance(first),
        'rest': [glance(event) async for event in reader],
        'other': [glance(event) async for event in rest],
    }


@step
async def parts(waiting, streaming, card):
    data = {'list': [1.5, True, None, 'é'], 'deep': {'': {}}}
    sent = [
        Part(
            raw=bytes([0, 1, 254, 255]),
            filename='a.bin',
            media_type='application/octet-stream',
        ),
        Part(
            url='https://example.com/a.txt',
            filename='a.txt',
            media_type='text/plain',
        ),
        Part(data=ParseDict(data, Value())),
    ]
    task = await task_of(waiting, 'parts', parts=sent)
    return [MessageToDict(part) for part in task.artifacts[0].parts]


@step
async def bytes_of_file(waiting, streaming, card):
    file = Part(raw=bytes([0, 1, 254, 255]), media_type='text/plain')
    events = await send(waiting, 'bytes', parts=[file])
    return [glance(event) for event in events]


@step
async def extended_card(waiting, streaming, card):
    request = GetExtendedAgentCardRequest()
    return (await waiting.get_extended_agent_card(request)).description


@step
async def get_unknown(waiting, streaming, card):
    await waiting.get_task(GetTaskRequest(id='nobody'))


@step
async def cancel_unknown(waiting, streaming, card):
    await waiting.cancel_task(CancelTaskRequest(id='nobody'))


@step
async def subscribe_unknown(waiting, streaming, card):
    request = SubscribeToTaskRequest(id='nobody')
    return [glance(event) async for event in streaming.subscribe(request)]


@step
async def send_to_unknown(waiting, streaming, card):
    await send(waiting, 'echo', task_id='nobody')


@step
async def stream_to_unknown(waiting, streaming, card):
    await send(streaming, 'echo', task_id='nobody')


@step
async def cancel_finished(waiting, streaming, card):
    task = await task_of(waiting, 'echo')
    await waiting.cancel_task(CancelTaskRequest(id=task.id))


@step
async def send_to_finished(waiting, streaming, card):
    task = await task_of(waiting, 'echo')
    await send(waiting, 'echo', task_id=task.id)


@step
async def subscribe_to_finished(waiting, streaming, card):
    task = await task_of(waiting, 'echo')
    request = SubscribeToTaskRequest(id=task.id)
    return [glance(event) async for event in streaming.subscribe(request)]


@step
async def wrong_context(waiting, streaming, card):
    task = await task_of(waiting, 'ask')
    await send(waiting, 'echo', task_id=task.id, context_id='another')


@step
async def media_type(waiting, streaming, card):
    video = Part(url='https://example.com/a.mp4', media_type='video/mp4')
    await send(waiting, 'echo', parts=[video])


@step
async def push_create(waiting, streaming, card):
    config = TaskPushNotificationConfig(
        task_id='t', id='c', url='https://example.com/hook'
    )
    await waiting.create_task_push_notification_config(config)


@step
async def push_get(waiting, streaming, card):
    await waiting.get_task_push_notification_config(
        GetTaskPushNotificationConfigRequest(task_id='t', id='c')
    )


@step
async def push_list(waiting, streaming, card):
    await waiting.list_task_push_notification_configs(
        ListTaskPushNotificationConfigsRequest(task_id='t')
    )


@step
async def push_delete(waiting, streaming, card):
    await waiting.delete_task_push_notification_config(
        DeleteTaskPushNotificationConfigRequest(task_id='t', id='c')
    )


async def glimpses(events):
    return [glance(event) async for event in events]


@alone
async def quiet(waiting, streaming, card):
    """Two readers of a task that is silent for a while."""
    task, rest = await until_working(streaming, 'quiet')
    reader = streaming.subscribe(SubscribeToTaskRequest(id=task.id))
    first = glance(await anext(reader))
    say('listening')
    ends = await asyncio.gather(glimpses(reader), glimpses(rest))
    return {'first': first, 'rest': ends[0], 'other': ends[1]}


async def main(url, binding, version, only=None):
    http = httpx.AsyncClient(timeout=30, verify=verify())
    card = await A2ACardResolver(http, url).get_agent_card()
    wanted = [
        each
        for each in card.supported_interfaces
        if each.protocol_binding == binding
        and each.protocol_version.startswith(version)
    ]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(wanted)

    async def connect(streaming):
        config = ClientConfig(
            httpx_client=http,
            grpc_channel_factory=channel,
            supported_protocol_bindings=[binding],
            streaming=streaming,
        )
        return await create_client(card, client_config=config)

    waiting, streaming = await connect(False), await connect(True)
    await run(
        lambda error: type(error).__name__.removesuffix('Error'),
        waiting,
        streaming,
        card,
        only=only,
    )
    await http.aclose()


asyncio.run(main(*sys.argv[1:]))

"""The Python SDK 0.3 as a client: client_v03.py URL BINDING VERSION [STEP]."""

import asyncio
import sys
import uuid

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    GetTaskPushNotificationConfigParams,
    Message,
    MessageSendConfiguration,
    Part,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)

from lines import alone, run, say, step
from reach import channel, verify


def message(words, parts=(), **more):
    return Message(
        role=Role.user,
        message_id=str(uuid.uuid4()),
        parts=[Part(root=part) for part in (TextPart(text=words), *parts)],
        **more,
    )


def state_of(task):
    return task.status.state.value.upper().replace('-', '_')


def texts(parts):
    return ''.join(getattr(part.root, 'text', '') for part in parts)


def glance(event):
    if isinstance(event, Message):
        return f'message {texts(event.parts)}'
    task, update = event
    if update is None:
        return f'task {state_of(task)}'
    if update.kind == 'status-update':
        final = ', final' if update.final else ''
        return f'status {state_of(update)}{final}'
    return f'artifact {texts(update.artifact.parts)}'


def plain(part):
    return part.root.model_dump(mode='json', by_alias=True, exclude_none=True)


def name_of(error):
    """The code of an error, or its HTTP or gRPC status."""
    if isinstance(error, grpc.RpcError):
        return error.code().name
    answer = getattr(error, 'error', None)
    code = getattr(answer, 'code', getattr(error, 'status_code', None))
    return str(code if code is not None else type(error).__name__)


def send(client, words, parts=(), now=False, **more):
    configuration = MessageSendConfiguration(blocking=not now)
    return client.send_message(
        message(words, parts, **more), configuration=configuration
    )


async def glimpses(events):
    """Summarizes events immediately, because the SDK keeps changing the task that it returned."""
    return [glance(event) async for event in events]


async def task_of(client, words, **more):
    [(task, _)] = [event async for event in send(client, words, **more)]
    return task


async def until_working(client, words='hold'):
    """A held task, and the rest of its stream."""
    stream = client.send_message(message(words))
    async for event in stream:
        if glance(event).endswith(' WORKING'):
            return event[0], stream
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
    await waiting.cancel_task(TaskIdParams(id=task.id))
    return state_of(task)


@step
async def reply(waiting, streaming, card):
    return await glimpses(send(waiting, 'message'))


@step
async def failure(waiting, streaming, card):
    task = await task_of(waiting, 'fail')
    return [state_of(task), texts(task.status.message.parts)]


@step
async def stream(waiting, streaming, card):
    return await glimpses(send(streaming, 'echo hello'))


@step
async def stream_reply(waiting, streaming, card):
    return await glimpses(send(streaming, 'message'))


@step
async def question(waiting, streaming, card):
    asked = await task_of(waiting, 'ask')
    answered = await task_of(
        waiting, 'echo it', task_id=asked.id, context_id=asked.context_id
    )
    task = await waiting.get_task(TaskQueryParams(id=asked.id))
    short = await waiting.get_task(
        TaskQueryParams(id=asked.id, history_length=1)
    )
    return {
        'states': [state_of(asked), state_of(answered)],
        'same': asked.id == answered.id,
        'history': [texts(each.parts) for each in task.history],
        'short': [texts(each.parts) for each in short.history],
    }


@step
async def question_streamed(waiting, streaming, card):
    return await glimpses(send(streaming, 'ask'))


@step
async def cancel(waiting, streaming, card):
    task, rest = await until_working(streaming)
    canceled = await streaming.cancel_task(TaskIdParams(id=task.id))
    return {
        'state': state_of(canceled),
        'rest': await glimpses(rest),
    }


@step
async def subscribe(waiting, streaming, card):
    task, rest = await until_working(streaming)
    reader = streaming.resubscribe(TaskIdParams(id=task.id))
    first = await anext(reader)
    await streaming.cancel_task(TaskIdParams(id=task.id))
    return {
        'first': glance(first),
        'rest': await glimpses(reader),
        'other': await glimpses(rest),
    }


@step
async def parts(waiting, streaming, card):
    sent = [
        FilePart(
            file=FileWithBytes(
                bytes='AAH+/w==',
                name='a.bin',
                mime_type='application/octet-stream',
            )
        ),
        FilePart(
            file=FileWithUri(
                uri='https://example.com/a.txt',
                name='a.txt',
                mime_type='text/plain',
            )
        ),
        DataPart(data={'list': [1.5, True, None, 'é'], 'deep': {'': {}}}),
    ]
    task = await task_of(waiting, 'parts', parts=sent)
    return [plain(part) for part in task.artifacts[0].parts]


@step
async def bytes_of_file(waiting, streaming, card):
    file = FileWithBytes(bytes='AAH+/w==', mime_type='text/plain')
    return await glimpses(send(waiting, 'bytes', parts=[FilePart(file=file)]))


@step
async def extended_card(waiting, streaming, card):
    return (await waiting.get_card()).description


@step
async def get_unknown(waiting, streaming, card):
    await waiting.get_task(TaskQueryParams(id='nobody'))


@step
async def cancel_unknown(waiting, streaming, card):
    await waiting.cancel_task(TaskIdParams(id='nobody'))


@step
async def subscribe_unknown(waiting, streaming, card):
    reader = streaming.resubscribe(TaskIdParams(id='nobody'))
    return await glimpses(reader)


@step
async def send_to_unknown(waiting, streaming, card):
    await glimpses(send(waiting, 'echo', task_id='nobody'))


@step
async def stream_to_unknown(waiting, streaming, card):
    await glimpses(send(streaming, 'echo', task_id='nobody'))


@step
async def cancel_finished(waiting, streaming, card):
    task = await task_of(waiting, 'echo')
    await waiting.cancel_task(TaskIdParams(id=task.id))


@step
async def send_to_finished(waiting, streaming, card):
    task = await task_of(waiting, 'echo')
    await glimpses(send(waiting, 'echo', task_id=task.id))


@step
async def subscribe_to_finished(waiting, streaming, card):
    task = await task_of(waiting, 'echo')
    reader = streaming.resubscribe(TaskIdParams(id=task.id))
    return await glimpses(reader)


@step
async def wrong_context(waiting, streaming, card):
    task = await task_of(waiting, 'ask')
    sent = send(waiting, 'echo', task_id=task.id, context_id='another')
    await glimpses(sent)


@step
async def media_type(waiting, streaming, card):
    uri = 'https://example.com/a.mp4'
    video = FilePart(file=FileWithUri(uri=uri, mime_type='video/mp4'))
    await glimpses(send(waiting, 'echo', parts=[video]))


@step
async def push_create(waiting, streaming, card):
    config = PushNotificationConfig(id='c', url='https://example.com/hook')
    await waiting.set_task_callback(
        TaskPushNotificationConfig(
            task_id='t', push_notification_config=config
        )
    )


@step
async def push_get(waiting, streaming, card):
    await waiting.get_task_callback(
        GetTaskPushNotificationConfigParams(
            id='t', push_notification_config_id='c'
        )
    )


@alone
async def quiet(waiting, streaming, card):
    """Two readers of a task that is silent for a while."""
    task, rest = await until_working(streaming, 'quiet')
    reader = streaming.resubscribe(TaskIdParams(id=task.id))
    first = glance(await anext(reader))
    say('listening')
    ends = await asyncio.gather(glimpses(reader), glimpses(rest))
    return {'first': first, 'rest': ends[0], 'other': ends[1]}


async def main(url, binding, version, only=None):
    async with httpx.AsyncClient(timeout=30, verify=verify()) as http:
        card = await A2ACardResolver(http, url).get_agent_card()

        def connect(streaming):
            config = ClientConfig(
                httpx_client=http,
                grpc_channel_factory=channel,
                supported_transports=[binding],
                use_client_preference=True,
                streaming=streaming,
            )
            return ClientFactory(config).create(card)

        waiting, streaming = connect(False), connect(True)
        await run(name_of, waiting, streaming, card, only=only)


asyncio.run(main(*sys.argv[1:]))

"""The Python SDK as its guide calls an agent: helper_v1.py URL CONVERSATIONS. Texts are read by its helpers.

Each message is sent for an answer, then for a stream.
"""

import asyncio
import json
import sys
import uuid

from a2a.client import ClientConfig, create_client
from a2a.helpers import get_artifact_text, get_message_text
from a2a.types import Message, Part, Role, SendMessageRequest

from lines import say


def part_of(said):
    if isinstance(said, str):
        return Part(text=said)
    return Part(raw=said['raw'].encode(), media_type=said['mediaType'])


def artifact_shown(artifact):
    files = [part for part in artifact.parts if part.HasField('raw')]
    shown = [f'[{part.filename}: {part.raw.decode()}]' for part in files]
    return get_artifact_text(artifact) + ''.join(shown)


async def turn(client, said, task):
    ids = {} if task is None else {'task_id': task.id, 'context_id': task.context_id}
    message = Message(
        role=Role.ROLE_USER,
        message_id=str(uuid.uuid4()),
        parts=[part_of(said)],
        **ids,
    )
    live, shown = '', ''
    async for event in client.send_message(SendMessageRequest(message=message)):
        if event.HasField('message'):
            return get_message_text(event.message), None
        if event.HasField('task'):
            task = event.task
            live += ''.join(artifact_shown(each) for each in task.artifacts)
            shown = get_message_text(task.status.message)
        if event.HasField('status_update'):
            shown = get_message_text(event.status_update.status.message)
        if event.HasField('artifact_update'):
            live += artifact_shown(event.artifact_update.artifact)
    return live or shown, task


async def main():
    url, conversations = sys.argv[1:]
    clients = {
        '': await create_client(url, client_config=ClientConfig(streaming=False)),
        ' stream': await create_client(url),
    }
    for name, conversation in json.loads(conversations).items():
        for way, client in clients.items():
            task = None
            for count, said in enumerate(conversation):
                step = f'{name}.{count}{way}'
                try:
                    shown, task = await turn(client, said, task)
                    say(step, result=shown)
                except Exception as error:
                    say(step, error=type(error).__name__, text=str(error))
    for client in clients.values():
        await client.close()


asyncio.run(main())

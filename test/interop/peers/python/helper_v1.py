"""The Python SDK as its guide calls an agent: helper_v1.py URL CONVERSATIONS. Texts are read by its helpers."""

import asyncio
import json
import sys

from a2a.client import create_client
from a2a.helpers import get_artifact_text, get_message_text
from a2a.types import (
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    TaskState,
)

from lines import say


def part_of(said):
    if isinstance(said, str):
        return Part(text=said)
    return Part(raw=b'video', media_type=said['mediaType'])


async def turn(client, said, task):
    ids = {} if task is None else {'task_id': task.id, 'context_id': task.context_id}
    message = Message(
        role=Role.ROLE_USER, message_id=f'm{id(said)}', parts=[part_of(said)], **ids
    )
    live, shown = '', ''
    async for event in client.send_message(SendMessageRequest(message=message)):
        if event.HasField('message'):
            return get_message_text(event.message), None
        if event.HasField('task'):
            task = event.task
        if event.HasField('status_update'):
            shown = get_message_text(event.status_update.status.message)
        if event.HasField('artifact_update'):
            live += get_artifact_text(event.artifact_update.artifact)
    return live or shown, task


async def main():
    url, conversations = sys.argv[1:]
    client = await create_client(url)
    for number, conversation in enumerate(json.loads(conversations)):
        task = None
        for count, said in enumerate(conversation):
            step = f'{number}.{count}'
            try:
                shown, task = await turn(client, said, task)
                say(step, result=shown)
                if task is not None:
                    # The same task, read as a whole.

                    whole = await client.get_task(GetTaskRequest(id=task.id))
                    texts = [get_artifact_text(each) for each in whole.artifacts]
                    say(f'{step} read', result='; '.join(texts))
                    if whole.status.state != TaskState.TASK_STATE_INPUT_REQUIRED:
                        task = None
            except Exception as error:
                say(step, error=type(error).__name__, text=str(error))
                task = None
    await client.close()


asyncio.run(main())

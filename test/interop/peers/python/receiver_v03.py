"""The Python SDK 0.3 reads webhooks. An unknown field is an error."""

import asyncio

from a2a.types import Task

from receiver import receive


def read(body):
    task = Task.model_validate(body, extra='forbid')
    # In the format of its own sender.
    return task.model_dump(mode='json', exclude_none=True, by_alias=True)


asyncio.run(receive(read))

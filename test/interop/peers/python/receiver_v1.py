"""The Python SDK 1.x reads webhooks. An unknown field is an error."""

import asyncio

from a2a.types import StreamResponse
from google.protobuf.json_format import MessageToDict, ParseDict

from receiver import receive

asyncio.run(
    receive(lambda body: MessageToDict(ParseDict(body, StreamResponse())))
)

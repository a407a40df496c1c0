"""The Python SDK 0.3 as a client that logs in: login_v03.py BINDING VERSION (URL SCHEME CREDENTIAL)…"""

import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.client.middleware import ClientCallContext
from a2a.types import Message, Part, Role, TextPart

from lines import take
from reach import channel, verify


async def ask(client, context):
    message = Message(
        role=Role.user,
        message_id=str(uuid.uuid4()),
        parts=[Part(root=TextPart(text='who'))],
    )
    [answer] = [
        event async for event in client.send_message(message, context=context)
    ]
    return ''.join(part.root.text for part in answer.parts)


async def main(binding, _version, *servers):
    async with httpx.AsyncClient(timeout=30, verify=verify()) as http:
        for url, scheme, right in zip(servers[::3], servers[1::3], servers[2::3]):
            card = await A2ACardResolver(http, url).get_agent_card()
            config = ClientConfig(
                httpx_client=http,
                grpc_channel_factory=channel,
                supported_transports=[binding],
                use_client_preference=True,
                streaming=False,
            )
            for name, credential in (
                ('none', None),
                ('wrong', 'wrong'),
                ('right', right),
            ):
                store = InMemoryContextCredentialStore()
                if credential is not None:
                    await store.set_credentials('session', scheme, credential)
                client = ClientFactory(config).create(
                    card, interceptors=[AuthInterceptor(store)]
                )
                context = ClientCallContext(state={'sessionId': 'session'})
                await take(
                    lambda error: type(error).__name__,
                    f'{scheme} {name}',
                    ask,
                    20,
                    (client, context),
                )


asyncio.run(main(*sys.argv[1:]))

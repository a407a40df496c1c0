"""The Python SDK 1.x as a client that logs in: login_v1.py BINDING VERSION (URL SCHEME CREDENTIAL)…"""

import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.client.client import ClientCallContext
from a2a.types import Message, Part, Role, SendMessageRequest

from lines import take
from reach import channel, verify


async def ask(client, context):
    message = Message(
        role=Role.ROLE_USER,
        message_id=str(uuid.uuid4()),
        parts=[Part(text='who')],
    )
    [event] = [
        event
        async for event in client.send_message(
            SendMessageRequest(message=message), context=context
        )
    ]
    return ''.join(part.text for part in event.message.parts)


async def main(binding, version, *servers):
    http = httpx.AsyncClient(timeout=30, verify=verify())
    for url, scheme, right in zip(servers[::3], servers[1::3], servers[2::3]):
        card = await A2ACardResolver(http, url).get_agent_card()
        wanted = [
            each
            for each in card.supported_interfaces
            if each.protocol_binding == binding
            and each.protocol_version.startswith(version)
        ]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(wanted)
        for name, credential in (('none', None), ('wrong', 'wrong'), ('right', right)):
            store = InMemoryContextCredentialStore()
            if credential is not None:
                await store.set_credentials('session', scheme, credential)
            client = await create_client(
                card,
                client_config=ClientConfig(
                    httpx_client=http,
                    grpc_channel_factory=channel,
                    supported_protocol_bindings=[binding],
                    streaming=False,
                ),
                interceptors=[AuthInterceptor(store)],
            )
            context = ClientCallContext(state={'sessionId': 'session'})
            await take(
                lambda error: type(error).__name__,
                f'{scheme} {name}',
                ask,
                20,
                (client, context),
            )
    await http.aclose()


asyncio.run(main(*sys.argv[1:]))

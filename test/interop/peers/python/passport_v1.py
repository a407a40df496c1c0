"""Secure Passport in Python, on the SDK 1.x: a passport is read and written
with pydantic, as the public sample does it, and its signature is checked and
made with `cryptography` alone.

passport_v1.py serve KEY: an agent that says what it has read.
passport_v1.py call URL KEY: a client that sends passports.
KEY is a JWK of EC with P-256, with its secret part.
"""

import asyncio
import base64
import copy
import json
import socket
import sys
import time
import uuid

import httpx
import uvicorn
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.client.service_parameters import (
    ServiceParametersFactory,
    with_a2a_extensions,
)
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
)
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    Message,
    Part,
    Role,
    SendMessageRequest,
)
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA256
from google.protobuf.json_format import MessageToDict
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette

from lines import end_with_parent, run, say, step

URI = (
    'https://github.com/a2aproject/a2a-samples/tree/main/samples/python'
    '/extensions/secure-passport'
)


class Passport(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra='forbid')
    client_id: str = Field(alias='clientId')
    session_id: str | None = Field(None, alias='sessionId')
    state: dict
    signature: str | None = None

    def written(self):
        return self.model_dump(by_alias=True, exclude_none=True)


def read(metadata):
    try:
        given = copy.deepcopy(metadata.get(URI))
        return Passport.model_validate(given) if given else None
    except ValidationError:
        return None


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def decode(text):
    return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))


def number(text):
    return int.from_bytes(decode(text), 'big')


def private_key(jwk):
    numbers = ec.EllipticCurvePublicNumbers(
        number(jwk['x']), number(jwk['y']), ec.SECP256R1()
    )
    return ec.EllipticCurvePrivateNumbers(
        number(jwk['d']), numbers
    ).private_key()


def signed_bytes(head, passport):
    """For these names and values, this is the canonical form."""
    payload = passport.written()
    payload.pop('signature', None)
    text = json.dumps(
        payload, sort_keys=True, separators=(',', ':'), ensure_ascii=False
    )
    return f'{head}.{encode(text.encode())}'.encode()


def sign(passport, jwk, audience):
    now = int(time.time())
    header = {
        'alg': 'ES256',
        'typ': 'passport+jws',
        'kid': jwk['kid'],
        'aud': audience,
        'iat': now,
        'exp': now + 60,
        'jti': uuid.uuid4().hex,
    }
    head = encode(json.dumps(header).encode())
    made = private_key(jwk).sign(
        signed_bytes(head, passport), ec.ECDSA(SHA256())
    )
    both = b''.join(n.to_bytes(32, 'big') for n in decode_dss_signature(made))
    return passport.model_copy(
        update={'signature': f'{head}..{encode(both)}'}
    )


def verified(passport, jwk, audience):
    head, payload, proof = passport.signature.split('.')
    header = json.loads(decode(head))
    raw = decode(proof)
    r, s = (int.from_bytes(raw[at : at + 32], 'big') for at in (0, 32))
    try:
        private_key(jwk).public_key().verify(
            encode_dss_signature(r, s),
            signed_bytes(head, passport),
            ec.ECDSA(SHA256()),
        )
    except InvalidSignature:
        return False
    lives = header['iat'] - 60 <= time.time() < header['exp']
    return payload == '' and lives and header['aud'] == audience


class Agent(AgentExecutor):
    """Returns the passport that it has read, as JSON."""

    def __init__(self, jwk, url):
        self.jwk = jwk
        self.url = url

    async def execute(self, context, queue):
        passport = read(MessageToDict(context.message.metadata))
        if passport is None:
            said = None
        else:
            signed = passport.signature is not None
            real = signed and passport.signature.count('.') == 2
            said = {
                'clientId': passport.client_id,
                'sessionId': passport.session_id,
                'state': passport.state,
                'signed': signed,
                'verified': real and verified(passport, self.jwk, self.url),
                'asked': URI in context.requested_extensions,
            }
        await queue.enqueue_event(
            Message(
                message_id=uuid.uuid4().hex,
                role=Role.ROLE_AGENT,
                context_id=context.context_id,
                parts=[Part(text=json.dumps(said))],
            )
        )

    async def cancel(self, context, queue):
        raise NotImplementedError


async def serve(jwk):
    web = socket.socket()
    web.bind(('127.0.0.1', 0))
    base = f'http://127.0.0.1:{web.getsockname()[1]}'
    extension = AgentExtension(uri=URI)
    extension.params['supportedStateKeys'] = ['currency', 'tier']
    card = AgentCard(
        name='Python passports',
        description='Reads passports',
        version='1.0.0',
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        capabilities=AgentCapabilities(
            streaming=True, extensions=[extension]
        ),
        supported_interfaces=[
            AgentInterface(
                protocol_binding='JSONRPC', protocol_version='1.0', url=base
            )
        ],
    )
    handler = DefaultRequestHandler(
        agent_executor=Agent(jwk, base),
        task_store=InMemoryTaskStore(),
        agent_card=card,
    )
    routes = [
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, rpc_url='/'),
    ]
    web.listen()
    say('ready', result=base)
    end_with_parent()
    config = uvicorn.Config(Starlette(routes=routes), log_level='error')
    await uvicorn.Server(config).serve(sockets=[web])


@step
async def passports(url, jwk):
    """The agent's answer to each passport."""
    async with httpx.AsyncClient(timeout=30) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        config = ClientConfig(httpx_client=http, streaming=False)
        client = ClientFactory(config).create(card)
        audience = card.supported_interfaces[0].url

        async def send(value):
            message = Message(
                role=Role.ROLE_USER,
                message_id=uuid.uuid4().hex,
                parts=[Part(text='hi')],
            )
            if value is not None:
                message.metadata[URI] = value
            context = ClientCallContext()
            context.service_parameters = ServiceParametersFactory.create_from(
                None, [with_a2a_extensions([URI])]
            )
            request = SendMessageRequest(message=message)
            async for chunk in client.send_message(request, context=context):
                return json.loads(chunk.message.parts[0].text)

        plain = Passport(
            client_id='a2a://orchestrator.com',
            session_id='session-123',
            state={'currency': 'USD', 'tier': 'silver'},
        )
        fake = plain.model_copy(update={'signature': 'mock-signature-xyz'})
        real = sign(plain, jwk, audience)
        changed = real.model_copy(update={'state': {'tier': 'gold'}})
        elsewhere = sign(plain, jwk, 'https://elsewhere.example.com')
        return {
            'none': await send(None),
            'plain': await send(plain.written()),
            'fake': await send(fake.written()),
            'real': await send(real.written()),
            'again': await send(real.written()),
            'changed': await send(changed.written()),
            'elsewhere': await send(elsewhere.written()),
            'extra': await send({**plain.written(), 'extra_field': 'x'}),
            'nameless': await send({'state': {}}),
        }


if sys.argv[1] == 'serve':
    asyncio.run(serve(json.loads(sys.argv[2])))
else:
    arguments = (sys.argv[2], json.loads(sys.argv[3]))
    asyncio.run(run(lambda error: type(error).__name__, *arguments))

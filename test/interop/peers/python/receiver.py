"""Receives webhooks for any SDK. Reports each body, and the SDK's parsed value, serialized again by the SDK."""

import hmac
import json
import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from lines import end_with_parent, say

HEADER = 'X-A2A-Notification-Token'


async def receive(read):
    """`read` parses and serializes JSON. The token is the first argument of the program."""
    token = sys.argv[1]

    async def hook(request):
        if not hmac.compare_digest(request.headers.get(HEADER, ''), token):
            say('refused')
            return Response(status_code=401)
        body = (await request.body()).decode()
        about = {'body': body, 'type': request.headers.get('Content-Type')}
        try:
            about['read'] = read(json.loads(body))
        except Exception as error:
            say('webhook', error=type(error).__name__, text=str(error))
            return Response(status_code=400)
        say('webhook', result=about)
        return Response(status_code=204)

    web = socket.socket()
    web.bind(('127.0.0.1', 0))
    web.listen()
    say('ready', result=f'http://127.0.0.1:{web.getsockname()[1]}/hook')
    end_with_parent()
    app = Starlette(routes=[Route('/hook', hook, methods=['POST'])])
    config = uvicorn.Config(app, log_level='error')
    await uvicorn.Server(config).serve(sockets=[web])

"""Requires both a token and an API key, as the card of a guarded server declares."""

import grpc
from starlette.responses import PlainTextResponse


def is_known(headers):
    return (
        headers.get('authorization') == 'Bearer token-of-a-peer'
        and headers.get('x-api-key') == 'key-of-a-peer'
    )


def guarded(app):
    """Wraps the application to reject unauthenticated requests. The card is public."""

    async def guard(scope, receive, send):
        if scope['type'] == 'http' and not scope['path'].startswith(
            '/.well-known/'
        ):
            headers = {
                name.decode().lower(): value.decode()
                for name, value in scope['headers']
            }
            if not is_known(headers):
                refusal = PlainTextResponse(
                    'Who are you?', 401, {'www-authenticate': 'Bearer'}
                )
                await refusal(scope, receive, send)
                return
        await app(scope, receive, send)

    return guard


class GrpcGuard(grpc.aio.ServerInterceptor):
    async def intercept_service(self, continuation, details):
        if is_known(dict(details.invocation_metadata)):
            return await continuation(details)

        async def refuse(request, context):
            await context.abort(
                grpc.StatusCode.UNAUTHENTICATED, 'Who are you?'
            )

        return grpc.unary_unary_rpc_method_handler(refuse)

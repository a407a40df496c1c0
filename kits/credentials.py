"""A pytest plugin that lets a kit show a token. The kits have no option for credentials.

Requests of httpx and of gRPC carry the token of KIT_TOKEN, unless a test sets the header itself. Requests of the library
`requests` do not: the kit for 0.3 uses it where it tests what a server answers to strangers.
"""

import os

import grpc
import httpx

AUTHORIZATION = "Bearer " + os.environ["KIT_TOKEN"]


def with_token(create):
    def created(self, *args, **options):
        create(self, *args, **options)
        self.headers.setdefault("authorization", AUTHORIZATION)

    return created


httpx.Client.__init__ = with_token(httpx.Client.__init__)
httpx.AsyncClient.__init__ = with_token(httpx.AsyncClient.__init__)


class Details(grpc.ClientCallDetails):
    """The details of a call, with the token in its metadata."""

    def __init__(self, details):
        self.method = details.method
        self.timeout = details.timeout
        self.credentials = details.credentials
        self.wait_for_ready = details.wait_for_ready
        self.compression = details.compression
        metadata = list(details.metadata or [])
        if not any(name == "authorization" for name, _ in metadata):
            metadata.append(("authorization", AUTHORIZATION))
        self.metadata = metadata


class Token(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):
    def intercept_unary_unary(self, proceed, details, request):
        return proceed(Details(details), request)

    def intercept_unary_stream(self, proceed, details, request):
        return proceed(Details(details), request)


open_channel = grpc.insecure_channel
grpc.insecure_channel = lambda *args, **options: grpc.intercept_channel(open_channel(*args, **options), Token())

"""Connects to a server, over TLS if INTEROP_CA names its certificate."""

import os
import ssl

import grpc

CA = os.environ.get('INTEROP_CA')


def channel(target):
    if CA is None:
        return grpc.aio.insecure_channel(target)
    with open(CA, 'rb') as file:
        roots = grpc.ssl_channel_credentials(file.read())
    return grpc.aio.secure_channel(target, roots)


def verify():
    """The certificates that httpx trusts."""
    return True if CA is None else ssl.create_default_context(cafile=CA)

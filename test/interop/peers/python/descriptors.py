"""Prints the .proto file of a module as base64: descriptors.py MODULE."""

import base64
import importlib
import sys

module = importlib.import_module(sys.argv[1])
print(base64.b64encode(module.DESCRIPTOR.serialized_pb).decode())

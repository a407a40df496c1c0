"""Writes the reports of a peer: a line of JSON for each step and its outcome."""

import asyncio
import json
import os
import sys
import traceback

STEPS = []
ALONE = {}


def step(function):
    """Registers a step. It gets the arguments of `run`; its name is written with hyphens."""
    STEPS.append((function.__name__.replace('_', '-'), function))
    return function


def alone(function):
    """Registers a step that takes minutes. It runs only on request, and then alone."""
    ALONE[function.__name__] = function
    return function


def say(name, **said):
    print(json.dumps({'step': name, **said}), flush=True)


async def run(name_of, *args, only=None):
    """Runs the steps in order, or only one. `name_of` returns the name of an error."""
    if only is not None:
        await take(name_of, only, ALONE[only], 240, args)
        return
    for name, function in STEPS:
        await take(name_of, name, function, 20, args)


async def take(name_of, name, function, limit, args):
    try:
        say(name, result=await asyncio.wait_for(function(*args), limit))
    except Exception as error:
        say(name, error=name_of(error), text=str(error)[:300])
        if os.environ.get('INTEROP_TRACE'):
            traceback.print_exception(error)


def end_with_parent():
    """A server runs as long as its standard input is open."""

    def wait():
        sys.stdin.buffer.read()
        os._exit(0)

    asyncio.get_running_loop().run_in_executor(None, wait)

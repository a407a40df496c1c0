"""What the peers say: a line of JSON for each step and what came of it."""

import asyncio
import json
import os
import sys
import traceback

STEPS = []
ALONE = {}


def step(function):
    """A step is called with what `run` was given; its name has hyphens."""
    STEPS.append((function.__name__.replace('_', '-'), function))
    return function


def alone(function):
    """A step of minutes: it is run where it is asked for, and then alone."""
    ALONE[function.__name__] = function
    return function


def say(name, **said):
    print(json.dumps({'step': name, **said}), flush=True)


async def run(name_of, *args, only=None):
    """Runs the steps in their order, or that one. `name_of` names an error."""
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
    """A server lives as long as its standard input is open."""

    def wait():
        sys.stdin.buffer.read()
        os._exit(0)

    asyncio.get_running_loop().run_in_executor(None, wait)

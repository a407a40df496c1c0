"""ADK for Python with a remote agent: framework_adk.py URL CONVERSATIONS."""

import asyncio
import json
import logging
import sys
import warnings

# It warns that its features are experimental, and logs what its events contain anyway.
warnings.filterwarnings('ignore')
logging.disable(logging.CRITICAL)

from google.adk.a2a.agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

from lines import say


def part_of(said):
    if isinstance(said, str):
        return types.Part(text=said)
    blob = types.Blob(data=said['raw'].encode(), mime_type=said['mediaType'])
    return types.Part(inline_data=blob)


def shown(events):
    """The text shown to the user: streamed pieces, then complete events, and the question in a call for input."""
    text, pieces = '', ''
    for event in events:
        words = ''
        for part in (event.content and event.content.parts) or []:
            if part.function_call:
                words += str((part.function_call.args or {}).get('input_required', ''))
            elif part.inline_data and not part.thought:
                file = part.inline_data
                words += f'[{file.display_name}: {file.data.decode()}]'
            elif not part.thought:
                words += part.text or ''
        if event.partial:
            pieces += words
            text += words
        elif words != pieces:
            text += words
        text += event.error_message or ''
    return text


async def main():
    url, conversations = sys.argv[1:]
    agent = RemoteA2aAgent(
        name='remote', agent_card=f'{url}/.well-known/agent-card.json'
    )
    runner = InMemoryRunner(agent=agent, app_name='interop')
    for name, conversation in json.loads(conversations).items():
        session = await runner.session_service.create_session(
            app_name='interop', user_id='ada'
        )
        for turn, said in enumerate(conversation):
            content = types.Content(role='user', parts=[part_of(said)])
            events = [
                event
                async for event in runner.run_async(
                    user_id='ada', session_id=session.id, new_message=content
                )
            ]
            say(f'{name}.{turn}', result=shown(events))


asyncio.run(main())

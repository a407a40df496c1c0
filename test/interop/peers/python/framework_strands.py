"""Strands with a remote agent: framework_strands.py URL CONVERSATIONS."""

import json
import logging
import sys
import warnings

warnings.filterwarnings('ignore')
logging.disable(logging.CRITICAL)

from strands.agent.a2a_agent import A2AAgent

from lines import say


url, conversations = sys.argv[1:]
for number, conversation in enumerate(json.loads(conversations)):
    agent = A2AAgent(url)
    for turn, said in enumerate(conversation):
        try:
            # It sends no other parts than text.
            prompt = said if isinstance(said, str) else 'hello'
            say(f'{number}.{turn}', result=str(agent(prompt)).strip())
        except Exception as error:
            say(f'{number}.{turn}', error=type(error).__name__, text=str(error))

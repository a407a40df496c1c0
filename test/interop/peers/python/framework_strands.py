"""Strands with a remote agent: framework_strands.py URL CONVERSATIONS."""

import json
import logging
import sys
import warnings

warnings.filterwarnings('ignore')
logging.disable(logging.CRITICAL)

from strands.agent.a2a_agent import A2AAgent

from lines import say


def picture(said):
    source = {'bytes': said['raw'].encode()}
    return {'image': {'format': 'png', 'source': source}}


url, conversations = sys.argv[1:]
for name, conversation in json.loads(conversations).items():
    agent = A2AAgent(url)
    for turn, said in enumerate(conversation):
        try:
            prompt = said if isinstance(said, str) else [picture(said)]
            say(f'{name}.{turn}', result=str(agent(prompt)).strip())
        except Exception as error:
            say(f'{name}.{turn}', error=type(error).__name__, text=str(error))

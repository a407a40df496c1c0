"""CrewAI with a remote agent: framework_crewai.py URL CONVERSATIONS."""

import json
import logging
import os
import sys
import warnings

os.environ['CREWAI_DISABLE_TELEMETRY'] = os.environ['OTEL_SDK_DISABLED'] = 'true'
warnings.filterwarnings('ignore')
logging.disable(logging.CRITICAL)
# CrewAI writes to standard output from its own threads.
answers, sys.stdout = sys.stdout, open(os.devnull, 'w')

from a2a.types import TaskState
from crewai.a2a.updates import PollingConfig, StreamingConfig
from crewai.a2a.utils.delegation import execute_a2a_delegation

open_states = {TaskState.input_required, TaskState.auth_required}
ways = {'': PollingConfig(interval=0.1), ' stream': StreamingConfig()}


def say(step, **said):
    print(json.dumps({'step': step, **said}), file=answers, flush=True)


def delegated(said, updates, before):
    """One turn of a CrewAI agent, with the conversation as its history."""
    history = before['history'] if before else []
    task = history[-1].task_id if before and before['status'] in open_states else None
    text, files = (said, None) if isinstance(said, str) else ('', {'photo': said['raw'].encode()})
    return execute_a2a_delegation(
        endpoint=url,
        auth=None,
        timeout=30,
        task_description=text,
        context_id=history[-1].context_id if history else None,
        task_id=task,
        conversation_history=history,
        updates=updates,
        input_files=files,
    )


url, conversations = sys.argv[1:]
for way, updates in ways.items():
    for name, conversation in json.loads(conversations).items():
        last = None
        for turn, said in enumerate(conversation):
            try:
                last = delegated(said, updates, last)
                result = last.get('result') or last.get('error') or ''
                say(f'{name}.{turn}{way}', result=result, state=last['status'].value)
            except Exception as error:
                say(f'{name}.{turn}{way}', error=type(error).__name__, text=str(error))

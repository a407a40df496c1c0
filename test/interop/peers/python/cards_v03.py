"""The same with the SDK 0.3."""

import json
import sys

from a2a.types import AgentCard
from a2a.utils.signing import (
    SignatureVerificationError,
    create_agent_card_signer,
    create_signature_verifier,
)
from jwt import PyJWK

what, card_file, key_file = sys.argv[1:]
with open(card_file) as file:
    card = AgentCard.model_validate(json.load(file))
with open(key_file) as file:
    jwk = json.load(file)
key = PyJWK(jwk)

if what == 'sign':
    header = {'alg': jwk['alg'], 'kid': jwk['kid'], 'typ': 'JOSE', 'jku': None}
    signed = create_agent_card_signer(key, header)(card)
    print(signed.model_dump_json(by_alias=True, exclude_none=True))
else:
    verify = create_signature_verifier(lambda kid, jku: key, [jwk['alg']])
    try:
        verify(card)
        print(json.dumps('verified'))
    except SignatureVerificationError as error:
        print(json.dumps(type(error).__name__))

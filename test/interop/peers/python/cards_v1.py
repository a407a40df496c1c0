"""Signs or verifies a card with the SDK 1: `sign` or `verify`, the file of the card, the file of a key as a JWK."""

import json
import sys

from a2a.types import AgentCard
from a2a.utils.signing import (
    SignatureVerificationError,
    create_agent_card_signer,
    create_signature_verifier,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt import PyJWK

what, card_file, key_file = sys.argv[1:]
with open(card_file) as file:
    # Readers ignore members that they do not know (A2A 1.0 §5.7).
    card = ParseDict(json.load(file), AgentCard(), ignore_unknown_fields=True)
with open(key_file) as file:
    jwk = json.load(file)
key = PyJWK(jwk)

if what == 'sign':
    header = {'alg': jwk['alg'], 'kid': jwk['kid'], 'typ': 'JOSE', 'jku': None}
    signed = create_agent_card_signer(key, header)(card)
    print(json.dumps(MessageToDict(signed)))
else:
    verify = create_signature_verifier(lambda kid, jku: key, [jwk['alg']])
    try:
        verify(card)
        print(json.dumps('verified'))
    except SignatureVerificationError as error:
        print(json.dumps(type(error).__name__))

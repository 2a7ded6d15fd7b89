"""`join-encryption.jwk`: the key a token is sealed to."""

import os

from bcd.adapters.beside_config import files
from bcd.domain.model.failures import FixConfiguration, Message
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.files.config import ENCRYPTION_KEY_FILE
from bcd.protocol.pki import seal


def read_encryption_key(path: str, pins: Pins) -> seal.Recipient:
    """The key a token is sealed to, once it matches `join_encryption_key_pin`; FixConfiguration otherwise."""
    try:
        recipient = seal.decode_recipient(files.read(path))
    except OSError as error:
        unreadable = FixConfiguration(Message.ENCRYPTION_KEY, path=path, why=files.words(error))
        raise files.failure(error, path, unreadable) from None
    except seal.MalformedJwk as error:
        raise FixConfiguration(Message.ENCRYPTION_KEY, path=path, why=error) from None
    if not pins.match(recipient.spki):
        presented = Pin.of(recipient.spki)
        raise FixConfiguration(
            Message.ENCRYPTION_PIN, have=pins, path=os.path.basename(path) or ENCRYPTION_KEY_FILE, presented=presented
        )
    return recipient

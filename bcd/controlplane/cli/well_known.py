"""The well-known document: what `node-config` writes into files, for a machine that has none yet."""

import json
from datetime import timedelta

from bcd.controlplane.adapters.files import directory as d
from bcd.controlplane.adapters.files.directory import Directory
from bcd.controlplane.adapters.files.endpoints import Endpoints
from bcd.controlplane.app.serve import GATEWAY, JOIN
from bcd.controlplane.cli.node_config import reached
from bcd.domain.model.identity import MAX_LIFETIME
from bcd.domain.model.names import Role
from bcd.protocol.pki import ecdsa, seal

VERSION = 1


def document(directory: Directory) -> bytes:
    """JSON, UTF-8, at most 64 KiB (docs/protocol.md, "The well-known document")."""
    settings = directory.settings()
    endpoints = Endpoints(directory)
    signing, encryption = (directory.key(name).public_key() for name in (d.JOIN_SIGNING, d.JOIN_ENCRYPTION))
    lifetimes = {role.value: _seconds(min(settings.leaf_lifetime, MAX_LIFETIME[role])) for role in Role}
    told = {
        "version": VERSION,
        "trustDomain": settings.trust_domain,
        "join": reached(endpoints, JOIN, settings.hosts[0], directory.path),
        "gateway": reached(endpoints, GATEWAY, settings.hosts[0], directory.path),
        "joinEncryptionKey": json.loads(seal.encode_recipient(seal.Recipient(encryption))),
        "joinSigningKey": ecdsa.to_jwk(signing) | {"use": "sig", "alg": "ES256", "kid": ecdsa.thumbprint(signing)},
        "servingCa": directory.authority(d.SERVING_CA).pem.decode(),
        "leafLifetimeSeconds": lifetimes,
    }
    return json.dumps(told, indent=2).encode() + b"\n"


def _seconds(span: timedelta) -> int:
    return int(span.total_seconds())

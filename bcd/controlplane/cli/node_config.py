"""`bcd-controlplane node-config`: what a node needs to find this control plane and to believe it."""

import json
import os
from argparse import Namespace

from bcd.controlplane.adapters.files import atomic
from bcd.controlplane.adapters.files import directory as d
from bcd.controlplane.adapters.files.directory import Directory, translated
from bcd.controlplane.adapters.files.endpoints import Endpoints
from bcd.controlplane.app.serve import GATEWAY, JOIN
from bcd.controlplane.cli.render import print_json
from bcd.controlplane.domain.admin import NodeConfigView
from bcd.controlplane.domain.failures import FixDirectory, Usage
from bcd.controlplane.domain.hosts import Endpoint
from bcd.controlplane.domain.messages import Message
from bcd.domain.model.pins import Pin
from bcd.protocol.pki import ecdsa, seal

CONFIG, JWK, CA = "config.toml", "join-encryption.jwk", "serving-ca.pem"


def node_config(arguments: Namespace) -> int:
    if not arguments.data_dir.startswith("/") or not arguments.data_dir.isprintable():
        raise Usage(Message.USAGE, command="node-config", what="--data-dir is an absolute path")
    directory = Directory(arguments.dir)
    directory.check_private()
    settings = directory.settings()
    endpoints = Endpoints(directory)
    signing, encryption = (directory.key(name).public_key() for name in (d.JOIN_SIGNING, d.JOIN_ENCRYPTION))
    serving = directory.authority(d.SERVING_CA)
    view = NodeConfigView(
        files=tuple(f"{arguments.out}/{name}" for name in (CONFIG, JWK, CA)),
        join=reached(endpoints, JOIN, settings.hosts[0], arguments.dir),
        gateway=reached(endpoints, GATEWAY, settings.hosts[0], arguments.dir),
        serving_ca_spki_pin=str(Pin.of(ecdsa.spki_of(serving.key.public_key()))),
        join_encryption_key_pin=str(Pin.of(ecdsa.spki_of(encryption))),
        join_signing_key_pin=str(Pin.of(ecdsa.spki_of(signing))),
    )
    _write(
        arguments.out,
        {
            JWK: seal.encode_recipient(seal.Recipient(encryption)),
            CA: serving.pem,
            CONFIG: _toml(view, settings.trust_domain, arguments.data_dir).encode(),
        },
    )
    if arguments.json:
        print_json(view)
    else:
        print("wrote", *view.files)
    return 0


def reached(endpoints: Endpoints, port: str, host: str, path: str) -> str:
    """Where nodes find `port`: the first of the certificate's hosts, and the port that is kept."""
    listening = endpoints.get(port)
    if listening is None:
        raise FixDirectory(Message.NO_ENDPOINT, path=path, port=port)
    return str(Endpoint(host, listening.port))


def _toml(view: NodeConfigView, domain: str, data_dir: str) -> str:
    return f"""\
# Configuration of bcd for trust domain {domain}, by bcd-controlplane node-config.
# join-encryption.jwk and serving-ca.pem belong beside this file. Nothing in the three is secret.

# Where this node keeps its identity.
data_dir = {json.dumps(data_dir)}

# Where it joins.
join = {json.dumps(view.join)}
# Where it renews its certificate and keeps its session.
gateway = {json.dumps(view.gateway)}

# Pins: SHA-256 of a public key. Each may be a list while a key is replaced.
# The CA above every certificate the control plane serves with (serving-ca.pem): whom this node talks to.
serving_ca_spki_pin = {json.dumps(view.serving_ca_spki_pin)}
# The key a join token is sealed to (join-encryption.jwk): who can read the token.
join_encryption_key_pin = {json.dumps(view.join_encryption_key_pin)}
# The key that signs answers and trust bundles: whose certificates this node takes.
join_signing_key_pin = {json.dumps(view.join_signing_key_pin)}
"""


def _write(out: str, files: dict[str, bytes]) -> None:
    """The configuration last: what it pins is there before it."""
    try:
        if not os.path.isdir(out):
            os.makedirs(out)
            # Unlike all else this process makes: the node reads it, as whatever user it runs.
            os.chmod(out, 0o755)  # noqa: S103
        descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise translated(error, out) from None
    try:
        for name, data in files.items():
            try:
                atomic.write(descriptor, name, data)
                os.chmod(name, 0o644, dir_fd=descriptor)
            except OSError as error:
                raise translated(error, f"{out}/{name}") from None
    finally:
        os.close(descriptor)

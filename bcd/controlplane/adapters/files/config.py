"""`controlplane.toml`: what `init` fixed. It is written last, and so says that the directory is complete."""

import json
import tomllib
from datetime import timedelta

from bcd.controlplane.domain.durations import MalformedDuration, duration, show_duration
from bcd.controlplane.domain.hosts import MalformedHost, host
from bcd.controlplane.domain.lifetimes import BadLifetime, leaf_lifetime
from bcd.controlplane.domain.settings import Settings
from bcd.domain.model.names import MalformedName, trust_domain

NAME = "controlplane.toml"


class BadConfig(Exception):
    """`key` and what is wrong with it."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key}: {why}")
        self.key = key
        self.why = why


def encode(settings: Settings) -> bytes:
    hosts = ", ".join(json.dumps(name) for name in settings.hosts)
    return f"""\
# A control plane of bcd; made by bcd-controlplane init, read when serve starts.
# The trust domain is in every certificate and never changes.
trust_domain = {json.dumps(settings.trust_domain)}
# Names and addresses nodes reach it by, all in the serving certificate; the first is the one node-config writes.
hosts = [{hosts}]
# How long a node's certificate lives: 20s to 24h. A ramdisk's never lives longer than 2h.
leaf_lifetime = {json.dumps(show_duration(settings.leaf_lifetime))}
""".encode()


def decode(data: bytes) -> Settings:
    """BadConfig when a key is missing, unknown or wrong."""
    try:
        values = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadConfig("syntax", str(error)) from None
    for key in values.keys() - {"trust_domain", "hosts", "leaf_lifetime"}:
        raise BadConfig(key, "no such key")
    domain, hosts, lifetime = (values.get(key) for key in ("trust_domain", "hosts", "leaf_lifetime"))
    if not isinstance(domain, str):
        raise BadConfig("trust_domain", "want a text")
    if not isinstance(hosts, list) or not hosts or not all(isinstance(name, str) for name in hosts):
        raise BadConfig("hosts", "want a list of at least one name or address")
    if not isinstance(lifetime, str):
        raise BadConfig("leaf_lifetime", 'want a text like "24h"')
    try:
        return Settings(trust_domain(domain), tuple(host(name) for name in hosts), _lifetime(lifetime))
    except MalformedName as error:
        raise BadConfig("trust_domain", str(error)) from None
    except MalformedHost as error:
        raise BadConfig("hosts", str(error)) from None


def _lifetime(text: str) -> timedelta:
    try:
        return leaf_lifetime(duration(text))
    except (MalformedDuration, BadLifetime) as error:
        raise BadConfig("leaf_lifetime", str(error)) from None

"""`controlplane.toml`: what `init` fixed. It is written last, and so says that the directory is complete."""

import json
import tomllib
from datetime import timedelta

from bcd.controlplane.domain.durations import MalformedDuration, duration, show_duration
from bcd.controlplane.domain.hosts import MalformedHost, host
from bcd.controlplane.domain.lifetimes import BadLifetime, leaf_lifetime
from bcd.controlplane.domain.settings import MIN_RETIRED_GRACE, RETIRED_GRACE, Settings
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
# How long after its renewal a node's old certificate may still turn up before it counts as a copy, and the node is
# revoked: 1s to 10m. Less than 10m is for demonstrations with short leaves.
retired_grace = {json.dumps(show_duration(settings.retired_grace))}
""".encode()


def decode(data: bytes) -> Settings:
    """BadConfig when a key is missing, unknown or wrong."""
    try:
        values = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadConfig("syntax", str(error)) from None
    for key in values.keys() - {"trust_domain", "hosts", "leaf_lifetime", "retired_grace"}:
        raise BadConfig(key, "no such key")
    domain, hosts, lifetime = (values.get(key) for key in ("trust_domain", "hosts", "leaf_lifetime"))
    grace = values.get("retired_grace", show_duration(RETIRED_GRACE))
    if not isinstance(domain, str):
        raise BadConfig("trust_domain", "want a text")
    if not isinstance(hosts, list) or not hosts or not all(isinstance(name, str) for name in hosts):
        raise BadConfig("hosts", "want a list of at least one name or address")
    if not isinstance(lifetime, str):
        raise BadConfig("leaf_lifetime", 'want a text like "24h"')
    if not isinstance(grace, str):
        raise BadConfig("retired_grace", 'want a text like "10m"')
    try:
        names = tuple(host(name) for name in hosts)
        return Settings(trust_domain(domain), names, _lifetime(lifetime), _grace(grace))
    except MalformedName as error:
        raise BadConfig("trust_domain", str(error)) from None
    except MalformedHost as error:
        raise BadConfig("hosts", str(error)) from None


def _lifetime(text: str) -> timedelta:
    try:
        return leaf_lifetime(duration(text))
    except (MalformedDuration, BadLifetime) as error:
        raise BadConfig("leaf_lifetime", str(error)) from None


def _grace(text: str) -> timedelta:
    try:
        grace = duration(text)
    except MalformedDuration as error:
        raise BadConfig("retired_grace", str(error)) from None
    if not MIN_RETIRED_GRACE <= grace <= RETIRED_GRACE:
        raise BadConfig("retired_grace", "it is at least 1s and at most 10m")
    return grace

"""`endpoints.json`: where the server listens; a port it was given once is the one it asks for again."""

import json

from bcd.controlplane.adapters.files.directory import ENDPOINTS, Directory
from bcd.controlplane.domain.failures import FixDirectory
from bcd.controlplane.domain.hosts import Endpoint, MalformedHost
from bcd.controlplane.domain.messages import Message


class Endpoints:
    """`ports.endpoints.Endpoints` in a directory."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def get(self, name: str) -> Endpoint | None:
        found = self._all().get(name)
        try:
            return Endpoint.parse(found) if found is not None else None
        except MalformedHost as error:
            raise self._broken(str(error)) from None

    def put(self, name: str, endpoint: Endpoint) -> None:
        every = self._all()
        if every.get(name) != str(endpoint):
            self._directory.write(ENDPOINTS, json.dumps(every | {name: str(endpoint)}, indent=2).encode() + b"\n")

    def _all(self) -> dict[str, str]:
        data = self._directory.read(ENDPOINTS)
        if data is None:
            return {}
        try:
            every = json.loads(data)
        except (ValueError, RecursionError):
            raise self._broken("not JSON") from None
        if not isinstance(every, dict) or not all(isinstance(value, str) for value in every.values()):
            raise self._broken("not an object of addresses")
        return every

    def _broken(self, why: str) -> FixDirectory:
        return FixDirectory(Message.FILE_BROKEN, path=f"{self._directory.path}/{ENDPOINTS}", why=why)

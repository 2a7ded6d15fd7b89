"""`admin.sock`: one JSON line in, one out, for the directory's owner alone."""

import asyncio
import contextlib
import os
from collections.abc import Callable

from bcd.controlplane.adapters.admin import codec
from bcd.controlplane.adapters.files.directory import SOCKET, Directory
from bcd.controlplane.domain.admin import Command
from bcd.controlplane.domain.failures import Failure, Internal, TryLater
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.ports.log import Log
from bcd.controlplane.ports.store import StoreUnavailable

# Most commands are a few hundred bytes; the largest import (cli.ek_files, cli.ek_csv) fits. The answer has no limit.
MAX_COMMAND_BYTES = 1 << 24
COMMAND_TIMEOUT_S = 10.0
# Lists are read while others are: a thread each, few.
MAX_AT_ONCE = 4


class AdminServer:
    def __init__(self, directory: Directory, run: Callable[[Command], object], log: Log) -> None:
        self._directory = directory
        self._run = run
        self._log = log
        self._server: asyncio.Server | None = None
        self._at_once = asyncio.Semaphore(MAX_AT_ONCE)
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Only under the directory's lock: a socket that lies there is a dead server's, and asyncio replaces it."""
        # The directory is 0700, so the moment between bind and chmod is open to nobody.
        self._server = await asyncio.start_unix_server(
            self._serve, self._directory.inside(SOCKET), limit=MAX_COMMAND_BYTES
        )
        os.chmod(self._directory.inside(SOCKET), 0o600)

    async def stop(self) -> None:
        """Answers what was asked, then ends; a command that comes later finds the store free."""
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(SOCKET, dir_fd=self._directory.fd)
        if self._open:
            await asyncio.wait(self._open, timeout=0.5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._open.add(task)
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT_S):
                line = await reader.readline()
            if line:
                writer.write(await self._answer(line))
                await writer.drain()
        except (OSError, ValueError, TimeoutError):
            # The command went away, or sent more than a command.
            pass
        finally:
            writer.close()
            if task is not None:
                self._open.discard(task)

    async def _answer(self, line: bytes) -> bytes:
        try:
            command = codec.decode_command(line)
            async with self._at_once:
                result = await asyncio.to_thread(self._run, command)
            return codec.encode_result(result)
        except Failure as failure:
            return codec.encode_failure(failure)
        except StoreUnavailable as error:
            self._log.fault("a command failed", error)
            return codec.encode_failure(TryLater(Message.STORE_UNAVAILABLE, why=error))
        except Exception as error:  # noqa: BLE001 - the outermost loop: the command must hear of it, the server go on
            self._log.fault("a command failed", error)
            return codec.encode_failure(Internal(Message.INTERNAL, what=type(error).__name__))

"""In the guest: the TPM client and its link over the kernel's device. What needs a process of its own is forked."""

import json
import os
import select
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from bcd.adapters.tpm.client import Client, Key
from bcd.adapters.tpm.device import DeviceLink
from bcd.adapters.tpm.link import BOUND_S, Late
from bcd.domain.model.failures import Failure
from bcd.protocol.tpm2 import commands, names, templates
from bcd.protocol.tpm2.commands import CommandCode, Empty, PcrReadIn, ReadPublicOut
from bcd.protocol.tpm2.structures import Algorithm, Handle, PcrSelection
from bcd.protocol.tpm2.wire import decode
from tests.fakes import kernel_tpm
from tests.fakes.kernel_tpm import MANAGED, TRANSIENT, errno_of

PERSISTENT_EK = 0x81010001
# No handle that the resource manager gives out: it counts down from 0x80ffffff.
UNKNOWN = 0x80000005
NOBODY = 65534
ROUNDS = 5
PCR_0 = PcrReadIn((PcrSelection(Algorithm.SHA256, b"\x01\x00\x00"),))
Found = object


class Counting(DeviceLink):
    """The link, counting what it sent and how often it opened the device."""

    def __init__(self, path: str = MANAGED, bound_s: float = BOUND_S) -> None:
        self.opened = 0
        self.codes: Counter[int] = Counter()
        super().__init__(path, bound_s, self._counted)

    def _counted(self, path: str, flags: int) -> int:
        descriptor = os.open(path, flags)
        self.opened += 1
        return descriptor

    def patience(self, bound_s: float) -> None:
        self._bound_s = bound_s

    def transmit(self, command: bytes) -> bytes:
        self.codes[int.from_bytes(command[6:10])] += 1
        return super().transmit(command)


def node_key(number: int) -> Key:
    return Key(Handle.OWNER, templates.node_key(bytes([number]) * 32))


AK = Key(Handle.ENDORSEMENT, templates.AK)


def client(path: str = MANAGED, bound_s: float = BOUND_S) -> tuple[Client, Counting]:
    link = Counting(path, bound_s)
    return Client(link, path), link


def name_of(tpm: Client, key: Key) -> str:
    """The key's name as ReadPublic gives it, for a handle that is loaded or loaded anew."""
    answer, _ = tpm.use((key,), commands.READ_PUBLIC, Empty())
    return answer.parameters.name.hex()


def name_of_persistent(tpm: Client) -> bytes:
    return tpm.run(commands.READ_PUBLIC, (PERSISTENT_EK,), Empty()).parameters.name


def failure_of(step: Callable[[], object]) -> dict[str, str]:
    """The documented failure that `step` ends with."""
    try:
        step()
    except Failure as failure:
        return {"message": failure.message.name, "text": failure.text}
    return {"message": "", "text": ""}


def in_child(step: Callable[[], Found], started: Callable[[int], None] = lambda pid: None) -> Callable[[], Found]:
    """Runs `step` in a process of its own, at once; the call that waits for what it found."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(send, "w") as pipe:
                json.dump(step(), pipe)
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    os.close(send)
    started(child)

    def wait() -> Found:
        with os.fdopen(receive) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        return json.loads(text)

    return wait


def somebody_who_is_not_root() -> Found:
    def step() -> Found:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        return failure_of(lambda: client()[0].load(node_key(1)))

    return in_child(step)()


def root_without_its_capabilities() -> Found:
    """As under a unit with an empty CapabilityBoundingSet, when udev gave the device to another user."""

    def step() -> Found:
        kernel_tpm.drop_capabilities()
        return failure_of(lambda: client()[0].load(node_key(1)))

    def in_its_group() -> Found:
        os.setgroups([NOBODY])
        return step()

    os.chown(MANAGED, NOBODY, NOBODY)
    os.chmod(MANAGED, 0o660)
    try:
        return {"alone": in_child(step)(), "in its group": in_child(in_its_group)()}
    finally:
        os.chown(MANAGED, 0, 0)
        os.chmod(MANAGED, 0o600)


def a_handle_that_denotes_nothing() -> Found:
    command = kernel_tpm.read_public(UNKNOWN)
    with kernel_tpm.opened(flags=0) as blocking, kernel_tpm.opened() as device:
        at_write = errno_of(lambda: blocking.write(command))
        device.write(command)
        at_read = errno_of(device.read)
        after = device.code(kernel_tpm.read_public(PERSISTENT_EK))
    tpm, _ = client()
    failure = failure_of(lambda: tpm.run(commands.READ_PUBLIC, (UNKNOWN,), Empty()))
    loaded = name_of(tpm, node_key(1))
    tpm.close()
    return {
        "at write, blocking": at_write,
        "at read, otherwise": at_read,
        "code after": after,
        "failure": failure,
        "loaded": loaded,
    }


def a_fourth_key() -> Found:
    with kernel_tpm.opened() as device:
        codes = [device.code(kernel_tpm.create_primary(node_key(number).template)) for number in range(4)]
        codes.append(device.code(kernel_tpm.read_public(PERSISTENT_EK)))
    tpm, link = client()
    held = [names.name(tpm.load(node_key(number)).public).hex() for number in range(4)]
    flushed = link.codes[CommandCode.FLUSH_CONTEXT]
    tpm.run(commands.READ_PUBLIC, (PERSISTENT_EK,), Empty())
    again = [name_of(tpm, node_key(number)) for number in range(4)]
    tpm.close()
    return {"codes": codes, "flushed": flushed, "same": held == again, "opened": link.opened}


def _work(numbers: tuple[int, ...], tpm: Client) -> list[str]:
    return [name_of(tpm, node_key(number)) for _ in range(ROUNDS) for number in numbers]


def two_processes() -> Found:
    """Each with as many keys as there is room for."""

    def step(numbers: tuple[int, ...]) -> Found:
        tpm, link = client()
        began = time.monotonic()
        found = _work(numbers, tpm)
        ended = time.monotonic()
        tpm.close()
        return {"names": found, "derived": link.codes[CommandCode.CREATE_PRIMARY], "began": began, "ended": ended}

    first, second = in_child(lambda: step((1, 2, 3))), in_child(lambda: step((4, 5, 6)))
    return [first(), second()]


def two_threads() -> Found:
    with kernel_tpm.opened() as device:
        device.write(kernel_tpm.create_primary(AK.template, AK.hierarchy))
        unlocked = errno_of(lambda: device.write(kernel_tpm.read_public(PERSISTENT_EK)))
        device.read()
    tpm, link = client()
    found: dict[int, list[str]] = {}
    start = threading.Barrier(2)

    def step(number: int) -> None:
        start.wait()
        found[number] = _work((number, number + 1, 5), tpm)

    threads = [threading.Thread(target=step, args=(number,)) for number in (1, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = {number: _work((number, number + 1, 5), tpm) for number in (1, 3)}
    tpm.close()
    return {"without a lock": unlocked, "same": found == alone, "opened": link.opened}


def a_late_reply() -> Found:
    """To a command that takes long: an RSA key that nobody derived before."""
    slow = replace(templates.EK_RSA_2048, unique=os.urandom(256))
    command = kernel_tpm.create_primary(slow, Handle.ENDORSEMENT)
    with kernel_tpm.opened() as device:
        poll = select.poll()
        poll.register(device.descriptor, select.POLLIN)
        device.write(command)
        # One millisecond, and an answer after many: poll() waits for the TPM.
        polled = bool(poll.poll(1))
    tpm, link = client(bound_s=0.001)
    tpm_late = failure_of(lambda: tpm.load(Key(Handle.ENDORSEMENT, slow)))
    busy = 0
    link.patience(BOUND_S)
    answer: bytes | None = None
    while answer is None:
        try:
            answer = link.transmit(kernel_tpm.read_public(PERSISTENT_EK))
        except Late:
            busy += 1
            time.sleep(0.001)
    own = decode(ReadPublicOut, answer[10:]).name == name_of_persistent(tpm)
    room = [name_of(tpm, node_key(number)) for number in range(3)]
    flushed = link.codes[CommandCode.FLUSH_CONTEXT]
    tpm.close()
    return {"polled": polled, "failure": tpm_late, "busy": busy, "own": own, "keys": len(room), "flushed": flushed}


def a_client_that_is_killed() -> Found:
    pids: list[int] = []

    def step() -> Found:
        device = kernel_tpm.Device()
        codes = [device.code(kernel_tpm.create_primary(node_key(number).template)) for number in range(3)]
        codes.append(device.code(kernel_tpm.start_session()))
        os.write(told, json.dumps([codes, device.handles(TRANSIENT)]).encode())
        signal.pause()
        return None

    hears, told = os.pipe()
    wait = in_child(step, pids.append)
    codes, held = json.loads(os.read(hears, 4096))
    alive = kernel_tpm.bare()
    os.kill(pids[0], signal.SIGKILL)
    os.waitpid(pids[0], 0)
    del wait
    return {"codes": codes, "held": held, "alive": alive, "killed": kernel_tpm.bare()}


def a_tpm_that_is_cleared() -> Found:
    using, using_link = client()
    idle, idle_link = client()
    node, ak = name_of(using, node_key(1)), name_of(using, AK)
    idle.load(node_key(2))
    with kernel_tpm.opened() as device:
        device.code(kernel_tpm.create_primary(node_key(3).template))
        kernel_tpm.clear()
        command = commands.write_command(commands.PCR_READ, (), PCR_0)
        dead = [errno_of(lambda: (device.write(command), device.read())) for _ in range(3)]
    found = {"dead": dead, "same node key": node == name_of(using, node_key(1)), "same AK": ak == name_of(using, AK)}
    banks = len(idle.run(commands.PCR_READ, (), PCR_0).parameters.values)
    using.close()
    idle.close()
    return found | {"opened": [using_link.opened, idle_link.opened], "digests": banks, "after": kernel_tpm.bare()}


def a_device_that_goes_and_comes_back() -> Found:
    # The kernel itself holds the first one (IMA), so that its number is not given out again.
    with kernel_tpm.unbound():
        pass
    path = kernel_tpm.managed()
    tpm, link = client(path)
    before = name_of(tpm, node_key(1))
    with kernel_tpm.unbound():
        held = failure_of(lambda: name_of(tpm, node_key(1)))
        gone = failure_of(lambda: name_of(tpm, node_key(1)))
    back = kernel_tpm.managed()
    after = name_of(tpm, node_key(1)) if back == path else ""
    tpm.close()
    return {"held": held, "gone": gone, "path": path, "back": back, "same": before == after, "opened": link.opened}

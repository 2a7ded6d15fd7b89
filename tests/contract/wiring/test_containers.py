"""Both containers: every provider builds, from a configuration that has everything, and says what is missing."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from dependency_injector import providers

from bcd.adapters.hardware.machine_file import MachineFile
from bcd.adapters.hardware.sysfs import SysfsHardware
from bcd.domain.lifecycle.join import Join
from bcd.domain.model.failures import FixConfiguration, Message
from bcd.domain.model.pins import Pin
from bcd.protocol.pki import seal
from bcd.wiring import node, settings
from bcd.wiring.container import Node
from bcd.wiring.fakehw import FakehwNode
from tests.fakes import pki
from tests.fakes.joining import Credential, Recorded

CONTAINERS = [Node, FakehwNode]
PIN = str(Pin.of(pki.spki(pki.ENCRYPTION_KEY)))
ALL = {
    "join": '"127.0.0.1:1"',
    "gateway": '"127.0.0.1:2"',
    "serving_ca_spki_pin": f'"{PIN}"',
    "join_encryption_key_pin": f'"{PIN}"',
    "join_signing_key_pin": f'"{PIN}"',
}


def built(container: type[Node], folder: Path, without: str = "", more: str = "") -> Node:
    path = folder / "config.toml"
    lines = [f"{key} = {value}" for key, value in ALL.items() if key != without]
    path.write_text("\n".join([*lines, f'data_dir = "{folder}/data"', more]))
    (folder / "join-encryption.jwk").write_bytes(seal.encode_recipient(seal.Recipient(pki.ENCRYPTION_KEY.public_key())))
    config = settings.read(str(path), {})
    return container(config=config, events=Recorded(), credential=Credential())


def provided(container: type[Node]) -> list[str]:
    return [name for name, provider in container.providers.items() if not isinstance(provider, providers.Dependency)]


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_provider_builds_and_writes_nothing(container: type[Node], tmp_path: Path) -> None:
    node = built(container, tmp_path)
    assert {"join", "reset", "load", "fs", "transport", "journal", "hand_over"} <= set(provided(container))
    for name in provided(container):
        made = getattr(node, name)()
        assert made is not None or name in {"record", "give_tpm_back"}, name
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_part_of_a_join_is_what_its_field_says(container: type[Node], tmp_path: Path) -> None:
    join = built(container, tmp_path).join()
    assert isinstance(join, Join)
    assert set(vars(join)) == set(inspect.signature(Join).parameters)
    for made in (join.begin, join.ask, join.store):
        assert set(vars(made)) == set(inspect.signature(type(made)).parameters)
    assert join.begin.path == f"{tmp_path}/data"
    assert {join.fs} == {part.fs for part in (join.load, join.begin, join.ask, join.store, join.hand_over)}
    assert join.begin.credential is join.credential
    assert join.begin.recipient().spki == pki.spki(pki.ENCRYPTION_KEY)
    assert join.ask.signing_pins.match(pki.spki(pki.ENCRYPTION_KEY))


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("key", ["join", "serving_ca_spki_pin", "join_signing_key_pin"])
def test_what_a_join_needs_and_the_configuration_lacks_is_named(
    key: str, container: type[Node], tmp_path: Path
) -> None:
    with pytest.raises(FixConfiguration) as caught:
        built(container, tmp_path, without=key).join()
    assert caught.value.message is Message.CONFIG_KEY
    assert f": {key}: missing" in caught.value.text


def test_the_key_to_seal_to_is_looked_for_only_when_there_is_something_to_seal(tmp_path: Path) -> None:
    join = built(Node, tmp_path, without="join_encryption_key_pin").join()
    with pytest.raises(FixConfiguration) as caught:
        join.begin.recipient()
    assert ": join_encryption_key_pin: missing" in caught.value.text


def test_only_bcd_fakehw_has_its_machine_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = tmp_path / "machine.json"
    machine.write_text('{"hostname": "made-up"}')
    monkeypatch.setenv("BCD_FAKEHW_MACHINE", str(machine))
    assert isinstance(built(Node, tmp_path).hardware(), SysfsHardware)
    fake = built(FakehwNode, tmp_path).hardware()
    assert isinstance(fake, MachineFile)
    assert fake.claims().hostname == "made-up"
    assert built(Node, tmp_path).hardware().claims().hostname != "made-up"


def test_a_container_has_its_own_parts_and_shares_none_with_the_next(tmp_path: Path) -> None:
    one, other = built(Node, tmp_path), built(Node, tmp_path)
    assert one.fs() is one.fs()
    assert one.fs() is not other.fs()


@pytest.mark.parametrize(
    "make", [node.data_directory, node.record_directory], ids=["data_directory", "record_directory"]
)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands over")
def test_a_helper_that_is_no_user_is_named_with_the_way_to_make_one(
    make: Callable[..., object], tmp_path: Path
) -> None:
    there = built(Node, tmp_path, more='[helper]\nuser = "nobody"')
    assert make(there.config()) is not None
    absent = built(Node, tmp_path, more='[helper]\nuser = "no-such-user"')
    if make is node.record_directory:
        assert make(absent.config()) is not None
        return
    with pytest.raises(FixConfiguration) as caught:
        make(absent.config())
    assert ": helper.user: there is no user no-such-user: useradd" in caught.value.text


def test_without_a_helper_root_keeps_no_record(tmp_path: Path) -> None:
    assert built(Node, tmp_path).record() is None


@pytest.mark.parametrize(("word", "makes"), [("", False), ("0", False), ("1", True)])
def test_a_made_up_machine_keeps_keys_in_its_tpm_where_it_is_told_to(
    word: str, makes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BCD_FAKEHW_TPM_KEYS", word)
    assert built(FakehwNode, tmp_path).keys_go_into_tpm() is makes


@pytest.mark.parametrize(
    ("more", "named"),
    [("", False), ("[tpm]\nwait_s = 5", False), ('[tpm]\ndevice = "/dev/tpmrm1"', True)],
    ids=["none", "another setting", "another device"],
)
def test_a_device_that_the_configuration_names_is_to_be_there(more: str, named: bool, tmp_path: Path) -> None:
    assert built(Node, tmp_path, more=more).tpm_is_named() is named


@pytest.mark.parametrize(("word", "named"), [(None, False), ("none", False), ("sim:/d/tpm", True)])
def test_so_is_a_software_tpm(word: str | None, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BCD_FAKEHW_TPM", raising=False)
    if word is not None:
        monkeypatch.setenv("BCD_FAKEHW_TPM", word)
    more = '[tpm]\ndevice = "/dev/tpmrm1"'
    assert built(FakehwNode, tmp_path, more=more).tpm_is_named() is named


@pytest.mark.parametrize(("more", "makes"), [("", True), ('[helper]\nuser = "nobody"', False)], ids=["without", "with"])
def test_under_a_helper_no_key_goes_into_the_tpm(more: str, makes: bool, tmp_path: Path) -> None:
    """The node that is to use it opens no TPM."""
    assert built(Node, tmp_path, more=more).keys_go_into_tpm() is makes


def test_another_word_for_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCD_FAKEHW_TPM_KEYS", "yes")
    with pytest.raises(FixConfiguration, match="environment: BCD_FAKEHW_TPM_KEYS: want 1"):
        built(FakehwNode, tmp_path).keys_go_into_tpm()

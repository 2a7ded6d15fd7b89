"""What counts as a real value of a machine, and what firmware writes instead of one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.claims import (
    MAX_CLAIM,
    MAX_CLAIMS_OF_A_KIND,
    PLACEHOLDERS,
    Claims,
    is_placeholder,
    only_real,
    real_gpu_uuid,
    real_hostname,
    real_mac,
    real_serial,
    real_uuid,
)

UUID = "8f2a4c1e-77b0-4d3e-9a51-0c6de5b1f2a3"


@pytest.mark.parametrize(
    "filler",
    [
        "",
        "   ",
        "0",
        "0000000000",
        "0000-0000",
        "xxxxxxxx",
        "........",
        "NNNNNNN",
        "123456789",
        "0123456789",
        "1234567890",
        "12345",
        "SYS-1234567890",
        "To Be Filled By O.E.M.",
        "To Be Filled By O.E.M",
        "To be filled by OEM",
        "Default string",
        "Default_string",
        "Not Settable",
        "Not Specified",
        "System Serial Number",
        "Base Board Serial Number",
        "Type2 - Board Serial Number",
        "N/A",
        "n.a.",
        "(null string)",
        "<EMPTY>",
        " None ",
    ],
)
def test_what_firmware_writes_when_nobody_set_a_value_is_a_placeholder(filler: str) -> None:
    assert is_placeholder(filler)
    assert real_serial(filler) == ""


def test_every_placeholder_is_in_the_form_that_texts_are_compared_in() -> None:
    assert [word for word in PLACEHOLDERS if not word.isalnum() or word != word.lower()] == []


@pytest.mark.parametrize(
    "serial",
    [
        "PF2ABCDE",
        "J4M9XK3",
        "VMware-56 4d 8c 1f 0a 2e 7b 11",
        "/7XK3PQ2/CNPE10039/",
        "1234567891",
        "S-O.E.M.-17",
        "00A",
    ],
)
def test_a_serial_number_is_kept_as_it_is_written(serial: str) -> None:
    assert real_serial(f" {serial}\n") == serial


@pytest.mark.parametrize("serial", ["A\x1b[31mB", "A\nB", "A\x00B", "AB" * 128 + "C"])
def test_a_serial_number_is_printable_and_at_most_256_characters(serial: str) -> None:
    assert real_serial(serial) == ""
    assert len(real_serial("AB" * 128)) == MAX_CLAIM


@pytest.mark.parametrize(
    "uuid",
    [
        "00000000-0000-0000-0000-000000000000",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "fefefefe-fefe-fefe-fefe-fefefefefefe",
        "01010101-0101-0101-0101-010101010101",
        "03000200-0400-0500-0006-000700080009",
        "00020003-0004-0005-0006-000700080009",
        "4C4C4544-0000-2010-8020-80C04F202020",
        "12345678-1234-5678-90ab-cddeefaabbcc",
    ],
)
def test_a_uuid_that_many_machines_share_is_none(uuid: str) -> None:
    assert real_uuid(uuid) == ""
    assert real_serial(uuid) == ""
    assert real_gpu_uuid(f"GPU-{uuid}") == ""


@pytest.mark.parametrize(
    "text", ["Not Settable", UUID[:-1], UUID + "0", UUID.replace("-", ""), f"{UUID} {UUID}", f"{{{UUID}}}"]
)
def test_what_has_not_the_form_of_a_uuid_is_none(text: str) -> None:
    assert real_uuid(text) == ""


def test_a_uuid_is_in_lower_case() -> None:
    assert real_uuid(f" {UUID.upper()}\n") == UUID
    assert real_uuid("4C4C4544-0042-3510-8052-B3C04F4B4E32") == "4c4c4544-0042-3510-8052-b3c04f4b4e32"


def test_a_gpu_uuid_has_its_prefix_whether_written_or_not() -> None:
    assert real_gpu_uuid(f" GPU-{UUID.upper()}") == f"gpu-{UUID}"
    assert real_gpu_uuid(UUID) == f"gpu-{UUID}"


@pytest.mark.parametrize(
    "text", ["GPU-????????-????-????-????-????????????", "GPU-", f"GPU-GPU-{UUID}", f"MIG-{UUID}", ""]
)
def test_a_gpu_that_the_driver_has_not_started_has_no_uuid(text: str) -> None:
    assert real_gpu_uuid(text) == ""


@pytest.mark.parametrize(
    "mac",
    [
        "00:00:00:00:00:00",
        "ff:ff:ff:ff:ff:ff",
        "FF:FF:FF:FF:FF:FF",
        "01:00:5e:00:00:01",
        "33:33:00:00:00:01",
        "fe:ff:ff:ff:ff:ff",
        "3c-ec-ef-12-34-56",
        "3cecef123456",
        "3c:ec:ef:12:34",
        "3c:ec:ef:12:34:56:78",
        "",
    ],
)
def test_b50_zero_all_ones_group_and_shared_addresses_are_no_mac(mac: str) -> None:
    assert real_mac(mac) == ""


def test_b50_a_mac_is_in_lower_case_and_may_be_locally_administered() -> None:
    assert real_mac("3C:EC:EF:12:34:56\n") == "3c:ec:ef:12:34:56"
    assert real_mac("02:fc:00:00:00:01") == "02:fc:00:00:00:01"


@pytest.mark.parametrize("name", ["", "(none)", "localhost", "LOCALHOST", "localhost.localdomain", "a\nb", "a" * 257])
def test_a_machine_that_nobody_named_has_no_hostname(name: str) -> None:
    assert real_hostname(name) == ""


@pytest.mark.parametrize("name", ["rack-7.example", "empty", "unknown", "12345", "Rack-7"])
def test_a_hostname_is_no_firmware_text(name: str) -> None:
    assert real_hostname(f"{name}\n") == name


def test_each_field_is_held_to_its_own_rule() -> None:
    raw = Claims(
        product_uuid=UUID.upper(),
        product_serial=" PF2ABCDE",
        board_serial="Default string",
        chassis_serial="None",
        macs=("3C:EC:EF:12:34:56", "ff:ff:ff:ff:ff:ff"),
        gpu_uuids=(f"GPU-{UUID}", "GPU-?"),
        hostname="none",
        boot_id="no uuid",
    )
    assert only_real(raw) == Claims(
        product_uuid=UUID,
        product_serial="PF2ABCDE",
        macs=("3c:ec:ef:12:34:56",),
        gpu_uuids=(f"gpu-{UUID}",),
        hostname="none",
    )


def test_b50_macs_are_sorted_unique_and_at_most_64() -> None:
    many = [f"3c:ec:ef:00:00:{number:02X}" for number in range(MAX_CLAIMS_OF_A_KIND + 1)]
    macs = only_real(Claims(macs=(*reversed(many), *many))).macs
    assert macs == tuple(mac.lower() for mac in many[:MAX_CLAIMS_OF_A_KIND])


_TEXT = st.one_of(
    st.text(max_size=300),
    st.uuids().map(str),
    st.uuids().map(lambda uuid: f"GPU-{uuid}".upper()),
    st.binary(min_size=6, max_size=6).map(lambda mac: mac.hex(":")),
)
_CLAIMS = st.builds(
    Claims, _TEXT, _TEXT, _TEXT, _TEXT, st.lists(_TEXT).map(tuple), st.lists(_TEXT).map(tuple), _TEXT, _TEXT
)


@given(raw=_CLAIMS)
def test_any_text_gives_claims_within_the_protocols_limits_that_are_real_already(raw: Claims) -> None:
    claims = only_real(raw)
    assert only_real(claims) == claims
    texts = [claims.product_uuid, claims.product_serial, claims.board_serial, claims.chassis_serial]
    for text in (*texts, *claims.macs, *claims.gpu_uuids, claims.hostname, claims.boot_id):
        assert len(text) <= MAX_CLAIM
        assert text.isprintable()
    assert list(claims.macs) == sorted(set(claims.macs))
    assert list(claims.gpu_uuids) == sorted(set(claims.gpu_uuids))

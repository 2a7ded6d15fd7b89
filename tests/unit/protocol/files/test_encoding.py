"""JSON objects, base64 and times as the data directory's files have them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.protocol.files import encoding
from bcd.protocol.files.encoding import MalformedFile, from_base64, from_time, json_object, to_base64, to_json, to_time
from tests.fakes.properties import few

INSTANTS = st.datetimes(timezones=st.just(UTC))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('aé☃\u2028\n"\\/'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@few
@given(INSTANTS)
def test_an_instant_reads_back_as_itself(instant: datetime) -> None:
    assert from_time(to_time(instant), "t") == instant


@pytest.mark.parametrize(
    ("instant", "told"),
    [
        (datetime(2026, 9, 26, 12, 0, tzinfo=UTC), "2026-09-26T12:00:00Z"),
        (datetime(2026, 9, 26, 12, 0, 0, 500_000, tzinfo=UTC), "2026-09-26T12:00:00.5Z"),
        (datetime(2026, 9, 26, 12, 0, 0, 1, tzinfo=UTC), "2026-09-26T12:00:00.000001Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
        (datetime(999, 12, 31, 23, 59, 59, tzinfo=UTC), "0999-12-31T23:59:59Z"),
        (datetime(2026, 9, 27, 2, 0, tzinfo=timezone(timedelta(hours=14))), "2026-09-26T12:00:00Z"),
        (datetime(2026, 9, 26, 9, 30, tzinfo=timezone(timedelta(hours=-2, minutes=-30))), "2026-09-26T12:00:00Z"),
    ],
)
def test_times_are_rfc_3339_utc_in_every_zone(instant: datetime, told: str) -> None:
    """B25."""
    assert to_time(instant) == told
    assert from_time(told, "t") == instant


def test_a_time_without_a_zone_is_not_written() -> None:
    """B25: it would be read as local time."""
    with pytest.raises(ValueError, match="zone"):
        to_time(datetime(2026, 9, 26, 12, 0))  # noqa: DTZ001 - the input in question


@pytest.mark.parametrize(
    ("told", "micros"), [("2026-09-26T12:00:00.123456789Z", 123456), ("2026-09-26T12:00:00.000000999Z", 0)]
)
def test_what_is_finer_than_a_microsecond_is_cut(told: str, micros: int) -> None:
    assert from_time(told, "t") == datetime(2026, 9, 26, 12, 0, 0, micros, tzinfo=UTC)


@pytest.mark.parametrize(
    "told",
    [
        None,
        7,
        "",
        "2026-09-26",
        "2026-09-26T12:00:00",
        "2026-09-26 12:00:00Z",
        "2026-09-26T12:00:00z",
        "2026-09-26t12:00:00Z",
        "2026-09-26T12:00:00+00:00",
        "2026-09-26T12:00:00+02:00",
        "2026-09-26T12:00Z",
        "2026-09-26T12:00:00.Z",
        "2026-09-26T12:00:00.1234567890Z",
        "2026-09-26T12:00:00Z\n",
        " 2026-09-26T12:00:00Z",
        "2026-13-26T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-09-26T24:00:00Z",
        "2026-09-26T12:00:60Z",
        "0000-01-01T00:00:00Z",
        "٢٠٢٦-09-26T12:00:00Z",
        "2026-09-26T12:00:00.٣Z",
    ],
)
def test_any_other_time_is_malformed(told: object) -> None:
    assert from_time("2026-09-26T12:00:00Z", "t")
    with pytest.raises(MalformedFile, match="has a t that is not an RFC 3339 UTC time"):
        from_time(told, "t")


@few
@given(st.text() | st.none() | st.integers())
def test_any_value_is_a_time_or_malformed(told: object) -> None:
    with pytest.raises(MalformedFile):
        from_time(told, "t")


@few
@given(st.binary(min_size=1))
def test_bytes_read_back_from_base64(data: bytes) -> None:
    assert from_base64(to_base64(data), "b") == data


@pytest.mark.parametrize(
    "told",
    [
        None,
        7,
        [],
        "",
        "QQ",
        "QQ=",
        "QUJD=",
        "Q",
        "=",
        "QQ==\n",
        " QQ==",
        "Q Q==",
        "QQ==QQ==",
        "-_-_",
        "QQ==A",
        "é",
        "QR==",
    ],
)
def test_unpadded_and_any_other_base64_is_malformed(told: object) -> None:
    """RFC 4648, section 4: padded, the standard alphabet, no white space, and no bits left over."""
    assert from_base64("QQ==", "b") == b"A"
    with pytest.raises(MalformedFile, match="has a b that is not base64"):
        from_base64(told, "b")


@few
@given(st.text("ABQRabqr+/=-_\n "))
def test_one_value_has_one_base64(told: str) -> None:
    try:
        assert to_base64(from_base64(told, "b")) == told
    except MalformedFile:
        pass


@few
@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_an_object_reads_back_as_itself(value: dict[str, object]) -> None:
    assert json_object(to_json(value)) == value
    assert to_json(value).endswith(b"}\n")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b"\x00", "holds only zero bytes"),
        (b"\x00" * 4096, "holds only zero bytes"),
        (b" ", "is not JSON"),
        (b"{", "is not JSON"),
        (b"{}\x00", "is not JSON"),
        (b"{}" + b"\x00" * 4000, "is not JSON"),
        (b"{}{}", "is not JSON"),
        (b"\xef\xbb\xbf{}", "is not JSON"),
        (b'{"a": 1, "a": 1}', "is not JSON"),
        (b'{"b": {"a": 1, "a": 2}}', "is not JSON"),
        (b'{"a": NaN}', "is not JSON"),
        (b'{"a": -Infinity}', "is not JSON"),
        (b'{"a": 1e999}', "is not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not JSON"),
        (b'{"a": "\\ud800"}', "is not JSON"),
        (b'{"\\udfff": 1}', "is not JSON"),
        (b'{"a": "\x01"}', "is not JSON"),
        (b'{"a":' * 5000, "is not JSON"),
        (b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}", "is not JSON"),
        (b"\xff\xfe{\x00}\x00", "is not UTF-8"),
        (b'{"a": "\xff"}', "is not UTF-8"),
        (b"[]", "is not a JSON object"),
        (b"null", "is not a JSON object"),
        (b'"text"', "is not a JSON object"),
        (b"7", "is not a JSON object"),
    ],
)
def test_anything_but_one_json_object_is_malformed(data: bytes, why: str) -> None:
    with pytest.raises(MalformedFile, match=why):
        json_object(data)


def test_31_levels_are_read_and_32_are_not() -> None:
    nested = {levels: b'{"a": ' + b"[" * (levels - 1) + b"7" + b"]" * (levels - 1) + b"}" for levels in (31, 32)}
    assert json_object(nested[31])
    with pytest.raises(MalformedFile, match="is not JSON"):
        json_object(nested[32])


def test_an_empty_object_is_one() -> None:
    assert json_object(b" {} \n") == {}


@few
@given(st.binary(max_size=60) | st.text(max_size=40).map(lambda text: f'{{"a": {text}}}'.encode("utf-8", "replace")))
def test_what_is_read_can_be_written_again(data: bytes) -> None:
    try:
        value = json_object(data)
    except MalformedFile:
        return
    assert json_object(to_json(value)) == value


@pytest.mark.parametrize("value", [{}, {"a": ""}, {"a": None}, {"a": 7}, {"a": ["x"]}])
def test_a_text_that_is_none_is_missing(value: dict[str, object]) -> None:
    assert encoding.text({"a": "x"}, "a") == "x"
    with pytest.raises(MalformedFile, match="has no a"):
        encoding.text(value, "a")

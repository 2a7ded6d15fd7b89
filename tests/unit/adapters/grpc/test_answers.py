"""What a gRPC status means, as a table: words for an operator, pushback, and when it is final."""

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

from bcd.adapters.grpc import answers
from tests.fakes.properties import few


def details(*infos: tuple[str, str]) -> bytes:
    packed = []
    for domain, reason in infos:
        one = any_pb2.Any()
        one.Pack(error_details_pb2.ErrorInfo(domain=domain, reason=reason))
        packed.append(one)
    return status_pb2.Status(code=7, details=packed).SerializeToString()


@pytest.mark.parametrize("code", list(grpc.StatusCode), ids=lambda code: code.name)
def test_every_status_is_named_with_or_without_the_servers_words(code: grpc.StatusCode) -> None:
    assert answers.cause(code, "") == code.name
    assert answers.cause(code, "no\nway") == f"{code.name}: no?way"
    assert len(answers.cause(code, "x" * 10_000)) < 230


@pytest.mark.parametrize(("words", "meaning"), answers._CAUSES)
def test_known_words_are_told_in_ours_however_much_stands_before_them(words: str, meaning: str) -> None:
    assert answers.cause(grpc.StatusCode.UNAVAILABLE, f"{'x' * 500} {words}: and more") == meaning
    assert answers.cause(grpc.StatusCode.UNAVAILABLE, "something else") == "UNAVAILABLE: something else"


@pytest.mark.parametrize(
    ("infos", "reason"),
    [
        ([("bc.identity", "ACCESS_DENIED")], "ACCESS_DENIED"),
        ([("other", "X"), ("bc.identity", "ACCESS_DENIED")], "ACCESS_DENIED"),
        ([("bc.identity", "OTHER")], "OTHER"),
        ([("bc.identity.evil", "ACCESS_DENIED")], ""),
        ([("BC.IDENTITY", "ACCESS_DENIED")], ""),
        ([("", "ACCESS_DENIED")], ""),
        ([], ""),
    ],
)
def test_only_our_own_error_info_gives_a_reason(infos: list[tuple[str, str]], reason: str) -> None:
    assert answers.reason({"grpc-status-details-bin": details(*infos)}) == reason


@few
@given(raw=st.binary(max_size=80))
def test_details_that_are_none_give_no_reason_and_no_crash(raw: bytes) -> None:
    assert answers.reason({"grpc-status-details-bin": raw}) == ""
    assert answers.reason({"grpc-status-details-bin": raw.decode("latin-1")}) == ""
    assert answers.reason({}) == ""


@pytest.mark.parametrize(
    ("raw", "milliseconds"),
    [
        (None, None),
        ("0", 0),
        ("250", 250),
        (b"250", 250),
        ("-1", -1),
        (str(-(2**63)), None),
        (str(-(2**63) + 1), -(2**63) + 1),
        ("", None),
        ("soon", None),
        ("1.5", None),
        ("9" * 5000, None),
    ],
)
def test_a_pushback_is_a_whole_number_of_milliseconds_or_none(
    raw: str | bytes | None, milliseconds: int | None
) -> None:
    trailing: dict[str, str | bytes] = {} if raw is None else {"grpc-retry-pushback-ms": raw}
    assert answers.pushback_ms(trailing) == milliseconds

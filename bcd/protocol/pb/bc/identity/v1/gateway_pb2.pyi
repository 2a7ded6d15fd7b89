import datetime

from bcd.protocol.pb.bc.identity.v1 import attestation_pb2 as _attestation_pb2
from bcd.protocol.pb.bc.identity.v1 import statements_pb2 as _statements_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RenewRequest(_message.Message):
    __slots__ = ("csr", "chain", "client_time", "renew_pop", "key_attestation")
    CSR_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    CLIENT_TIME_FIELD_NUMBER: _ClassVar[int]
    RENEW_POP_FIELD_NUMBER: _ClassVar[int]
    KEY_ATTESTATION_FIELD_NUMBER: _ClassVar[int]
    csr: bytes
    chain: _containers.RepeatedScalarFieldContainer[bytes]
    client_time: _timestamp_pb2.Timestamp
    renew_pop: _statements_pb2.SignedStatement
    key_attestation: _attestation_pb2.KeyAttestation
    def __init__(self, csr: _Optional[bytes] = ..., chain: _Optional[_Iterable[bytes]] = ..., client_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., renew_pop: _Optional[_Union[_statements_pb2.SignedStatement, _Mapping]] = ..., key_attestation: _Optional[_Union[_attestation_pb2.KeyAttestation, _Mapping]] = ...) -> None: ...

class RenewReply(_message.Message):
    __slots__ = ("server_time", "issued")
    SERVER_TIME_FIELD_NUMBER: _ClassVar[int]
    ISSUED_FIELD_NUMBER: _ClassVar[int]
    server_time: _timestamp_pb2.Timestamp
    issued: _statements_pb2.SignedStatement
    def __init__(self, server_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., issued: _Optional[_Union[_statements_pb2.SignedStatement, _Mapping]] = ...) -> None: ...

class NodeMessage(_message.Message):
    __slots__ = ("hello",)
    HELLO_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("journal_id", "boot_id", "daemon_version", "node_key")
    JOURNAL_ID_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    DAEMON_VERSION_FIELD_NUMBER: _ClassVar[int]
    NODE_KEY_FIELD_NUMBER: _ClassVar[int]
    journal_id: str
    boot_id: str
    daemon_version: str
    node_key: str
    def __init__(self, journal_id: _Optional[str] = ..., boot_id: _Optional[str] = ..., daemon_version: _Optional[str] = ..., node_key: _Optional[str] = ...) -> None: ...

class GatewayMessage(_message.Message):
    __slots__ = ("welcome", "revoked", "renew_now", "trust_bundle")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    RENEW_NOW_FIELD_NUMBER: _ClassVar[int]
    TRUST_BUNDLE_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    revoked: RevocationNotice
    renew_now: RenewNow
    trust_bundle: _statements_pb2.SignedStatement
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., revoked: _Optional[_Union[RevocationNotice, _Mapping]] = ..., renew_now: _Optional[_Union[RenewNow, _Mapping]] = ..., trust_bundle: _Optional[_Union[_statements_pb2.SignedStatement, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("server_time", "trust_bundle")
    SERVER_TIME_FIELD_NUMBER: _ClassVar[int]
    TRUST_BUNDLE_FIELD_NUMBER: _ClassVar[int]
    server_time: _timestamp_pb2.Timestamp
    trust_bundle: _statements_pb2.SignedStatement
    def __init__(self, server_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., trust_bundle: _Optional[_Union[_statements_pb2.SignedStatement, _Mapping]] = ...) -> None: ...

class RevocationNotice(_message.Message):
    __slots__ = ("reason", "revoked_at")
    REASON_FIELD_NUMBER: _ClassVar[int]
    REVOKED_AT_FIELD_NUMBER: _ClassVar[int]
    reason: str
    revoked_at: _timestamp_pb2.Timestamp
    def __init__(self, reason: _Optional[str] = ..., revoked_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RenewNow(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

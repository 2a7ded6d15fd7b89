import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SignedStatement(_message.Message):
    __slots__ = ("purpose", "payload", "kid", "signature", "signer_spki")
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    KID_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    SIGNER_SPKI_FIELD_NUMBER: _ClassVar[int]
    purpose: str
    payload: bytes
    kid: str
    signature: bytes
    signer_spki: bytes
    def __init__(self, purpose: _Optional[str] = ..., payload: _Optional[bytes] = ..., kid: _Optional[str] = ..., signature: _Optional[bytes] = ..., signer_spki: _Optional[bytes] = ...) -> None: ...

class JoinResponse(_message.Message):
    __slots__ = ("csr_sha256", "chain", "trust_bundle", "server_time")
    CSR_SHA256_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    TRUST_BUNDLE_FIELD_NUMBER: _ClassVar[int]
    SERVER_TIME_FIELD_NUMBER: _ClassVar[int]
    csr_sha256: bytes
    chain: _containers.RepeatedScalarFieldContainer[bytes]
    trust_bundle: SignedStatement
    server_time: _timestamp_pb2.Timestamp
    def __init__(self, csr_sha256: _Optional[bytes] = ..., chain: _Optional[_Iterable[bytes]] = ..., trust_bundle: _Optional[_Union[SignedStatement, _Mapping]] = ..., server_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RenewResponse(_message.Message):
    __slots__ = ("csr_sha256", "chain", "trust_bundle", "server_time")
    CSR_SHA256_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    TRUST_BUNDLE_FIELD_NUMBER: _ClassVar[int]
    SERVER_TIME_FIELD_NUMBER: _ClassVar[int]
    csr_sha256: bytes
    chain: _containers.RepeatedScalarFieldContainer[bytes]
    trust_bundle: SignedStatement
    server_time: _timestamp_pb2.Timestamp
    def __init__(self, csr_sha256: _Optional[bytes] = ..., chain: _Optional[_Iterable[bytes]] = ..., trust_bundle: _Optional[_Union[SignedStatement, _Mapping]] = ..., server_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TrustBundle(_message.Message):
    __slots__ = ("trust_domain", "version", "command_roots", "approvers", "quorum", "issued_at")
    TRUST_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMAND_ROOTS_FIELD_NUMBER: _ClassVar[int]
    APPROVERS_FIELD_NUMBER: _ClassVar[int]
    QUORUM_FIELD_NUMBER: _ClassVar[int]
    ISSUED_AT_FIELD_NUMBER: _ClassVar[int]
    trust_domain: str
    version: int
    command_roots: _containers.RepeatedScalarFieldContainer[bytes]
    approvers: _containers.RepeatedCompositeFieldContainer[Approver]
    quorum: int
    issued_at: _timestamp_pb2.Timestamp
    def __init__(self, trust_domain: _Optional[str] = ..., version: _Optional[int] = ..., command_roots: _Optional[_Iterable[bytes]] = ..., approvers: _Optional[_Iterable[_Union[Approver, _Mapping]]] = ..., quorum: _Optional[int] = ..., issued_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Approver(_message.Message):
    __slots__ = ("kid", "spki", "name")
    KID_FIELD_NUMBER: _ClassVar[int]
    SPKI_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    kid: str
    spki: bytes
    name: str
    def __init__(self, kid: _Optional[str] = ..., spki: _Optional[bytes] = ..., name: _Optional[str] = ...) -> None: ...

class RenewPop(_message.Message):
    __slots__ = ("csr_sha256", "leaf_sha256", "client_time")
    CSR_SHA256_FIELD_NUMBER: _ClassVar[int]
    LEAF_SHA256_FIELD_NUMBER: _ClassVar[int]
    CLIENT_TIME_FIELD_NUMBER: _ClassVar[int]
    csr_sha256: bytes
    leaf_sha256: bytes
    client_time: _timestamp_pb2.Timestamp
    def __init__(self, csr_sha256: _Optional[bytes] = ..., leaf_sha256: _Optional[bytes] = ..., client_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

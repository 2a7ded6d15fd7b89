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

class JoinRequest(_message.Message):
    __slots__ = ("attestor", "csr", "sealed_token", "wanted_node_id", "role", "claims", "daemon_version", "pending_id", "tpm_evidence", "challenge_answer")
    ATTESTOR_FIELD_NUMBER: _ClassVar[int]
    CSR_FIELD_NUMBER: _ClassVar[int]
    SEALED_TOKEN_FIELD_NUMBER: _ClassVar[int]
    WANTED_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    DAEMON_VERSION_FIELD_NUMBER: _ClassVar[int]
    PENDING_ID_FIELD_NUMBER: _ClassVar[int]
    TPM_EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    CHALLENGE_ANSWER_FIELD_NUMBER: _ClassVar[int]
    attestor: str
    csr: bytes
    sealed_token: SealedToken
    wanted_node_id: str
    role: str
    claims: Claims
    daemon_version: str
    pending_id: str
    tpm_evidence: _attestation_pb2.TpmEvidence
    challenge_answer: ChallengeAnswer
    def __init__(self, attestor: _Optional[str] = ..., csr: _Optional[bytes] = ..., sealed_token: _Optional[_Union[SealedToken, _Mapping]] = ..., wanted_node_id: _Optional[str] = ..., role: _Optional[str] = ..., claims: _Optional[_Union[Claims, _Mapping]] = ..., daemon_version: _Optional[str] = ..., pending_id: _Optional[str] = ..., tpm_evidence: _Optional[_Union[_attestation_pb2.TpmEvidence, _Mapping]] = ..., challenge_answer: _Optional[_Union[ChallengeAnswer, _Mapping]] = ...) -> None: ...

class SealedToken(_message.Message):
    __slots__ = ("kid", "sealed")
    KID_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    kid: str
    sealed: bytes
    def __init__(self, kid: _Optional[str] = ..., sealed: _Optional[bytes] = ...) -> None: ...

class Claims(_message.Message):
    __slots__ = ("product_uuid", "product_serial", "board_serial", "chassis_serial", "macs", "gpu_uuids", "hostname", "boot_id")
    PRODUCT_UUID_FIELD_NUMBER: _ClassVar[int]
    PRODUCT_SERIAL_FIELD_NUMBER: _ClassVar[int]
    BOARD_SERIAL_FIELD_NUMBER: _ClassVar[int]
    CHASSIS_SERIAL_FIELD_NUMBER: _ClassVar[int]
    MACS_FIELD_NUMBER: _ClassVar[int]
    GPU_UUIDS_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    product_uuid: str
    product_serial: str
    board_serial: str
    chassis_serial: str
    macs: _containers.RepeatedScalarFieldContainer[str]
    gpu_uuids: _containers.RepeatedScalarFieldContainer[str]
    hostname: str
    boot_id: str
    def __init__(self, product_uuid: _Optional[str] = ..., product_serial: _Optional[str] = ..., board_serial: _Optional[str] = ..., chassis_serial: _Optional[str] = ..., macs: _Optional[_Iterable[str]] = ..., gpu_uuids: _Optional[_Iterable[str]] = ..., hostname: _Optional[str] = ..., boot_id: _Optional[str] = ...) -> None: ...

class JoinReply(_message.Message):
    __slots__ = ("server_time", "issued", "pending", "challenge")
    SERVER_TIME_FIELD_NUMBER: _ClassVar[int]
    ISSUED_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    CHALLENGE_FIELD_NUMBER: _ClassVar[int]
    server_time: _timestamp_pb2.Timestamp
    issued: _statements_pb2.SignedStatement
    pending: JoinPending
    challenge: JoinChallenge
    def __init__(self, server_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., issued: _Optional[_Union[_statements_pb2.SignedStatement, _Mapping]] = ..., pending: _Optional[_Union[JoinPending, _Mapping]] = ..., challenge: _Optional[_Union[JoinChallenge, _Mapping]] = ...) -> None: ...

class JoinPending(_message.Message):
    __slots__ = ("id", "retry_after_s")
    ID_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_S_FIELD_NUMBER: _ClassVar[int]
    id: str
    retry_after_s: int
    def __init__(self, id: _Optional[str] = ..., retry_after_s: _Optional[int] = ...) -> None: ...

class JoinChallenge(_message.Message):
    __slots__ = ("id", "attestor", "not_after", "tpm")
    ID_FIELD_NUMBER: _ClassVar[int]
    ATTESTOR_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    TPM_FIELD_NUMBER: _ClassVar[int]
    id: str
    attestor: str
    not_after: _timestamp_pb2.Timestamp
    tpm: _attestation_pb2.TpmChallenge
    def __init__(self, id: _Optional[str] = ..., attestor: _Optional[str] = ..., not_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tpm: _Optional[_Union[_attestation_pb2.TpmChallenge, _Mapping]] = ...) -> None: ...

class ChallengeAnswer(_message.Message):
    __slots__ = ("id", "secret", "quote", "pcr_values", "certification")
    ID_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    QUOTE_FIELD_NUMBER: _ClassVar[int]
    PCR_VALUES_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATION_FIELD_NUMBER: _ClassVar[int]
    id: str
    secret: bytes
    quote: _attestation_pb2.Attestation
    pcr_values: _containers.RepeatedScalarFieldContainer[bytes]
    certification: _attestation_pb2.Attestation
    def __init__(self, id: _Optional[str] = ..., secret: _Optional[bytes] = ..., quote: _Optional[_Union[_attestation_pb2.Attestation, _Mapping]] = ..., pcr_values: _Optional[_Iterable[bytes]] = ..., certification: _Optional[_Union[_attestation_pb2.Attestation, _Mapping]] = ...) -> None: ...

from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TpmEvidence(_message.Message):
    __slots__ = ("endorsement_keys", "ek_chain", "pcr_banks", "ak_public", "node_key_public")
    ENDORSEMENT_KEYS_FIELD_NUMBER: _ClassVar[int]
    EK_CHAIN_FIELD_NUMBER: _ClassVar[int]
    PCR_BANKS_FIELD_NUMBER: _ClassVar[int]
    AK_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    NODE_KEY_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    endorsement_keys: _containers.RepeatedCompositeFieldContainer[EndorsementKey]
    ek_chain: _containers.RepeatedScalarFieldContainer[bytes]
    pcr_banks: _containers.RepeatedScalarFieldContainer[int]
    ak_public: bytes
    node_key_public: bytes
    def __init__(self, endorsement_keys: _Optional[_Iterable[_Union[EndorsementKey, _Mapping]]] = ..., ek_chain: _Optional[_Iterable[bytes]] = ..., pcr_banks: _Optional[_Iterable[int]] = ..., ak_public: _Optional[bytes] = ..., node_key_public: _Optional[bytes] = ...) -> None: ...

class EndorsementKey(_message.Message):
    __slots__ = ("public_area", "certificate")
    PUBLIC_AREA_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    public_area: bytes
    certificate: bytes
    def __init__(self, public_area: _Optional[bytes] = ..., certificate: _Optional[bytes] = ...) -> None: ...

class TpmChallenge(_message.Message):
    __slots__ = ("credential", "encrypted_secret", "nonce", "pcr_bank", "pcr_selection", "ek_name")
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_SECRET_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    PCR_BANK_FIELD_NUMBER: _ClassVar[int]
    PCR_SELECTION_FIELD_NUMBER: _ClassVar[int]
    EK_NAME_FIELD_NUMBER: _ClassVar[int]
    credential: bytes
    encrypted_secret: bytes
    nonce: bytes
    pcr_bank: int
    pcr_selection: bytes
    ek_name: bytes
    def __init__(self, credential: _Optional[bytes] = ..., encrypted_secret: _Optional[bytes] = ..., nonce: _Optional[bytes] = ..., pcr_bank: _Optional[int] = ..., pcr_selection: _Optional[bytes] = ..., ek_name: _Optional[bytes] = ...) -> None: ...

class Attestation(_message.Message):
    __slots__ = ("attest", "signature")
    ATTEST_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    attest: bytes
    signature: bytes
    def __init__(self, attest: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class KeyAttestation(_message.Message):
    __slots__ = ("ak_public", "key_public", "certification")
    AK_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    KEY_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATION_FIELD_NUMBER: _ClassVar[int]
    ak_public: bytes
    key_public: bytes
    certification: Attestation
    def __init__(self, ak_public: _Optional[bytes] = ..., key_public: _Optional[bytes] = ..., certification: _Optional[_Union[Attestation, _Mapping]] = ...) -> None: ...

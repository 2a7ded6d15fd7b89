"""What tpm2-pytss takes for one signature, from the digest to both halves, and one CreatePrimary: run by the
system's Python, for which Debian packages it. To a software TPM it connects anew for each command.

Arguments: the socket of a software TPM, a TPM2B_PUBLIC in hexadecimal, how often. Writes {"signature": [seconds], …}.
"""

import json
import sys
import time

from tpm2_pytss import (
    ESAPI,
    ESYS_TR,
    TPM2_ALG,
    TPM2_RH,
    TPM2_ST,
    TPM2B_DIGEST,
    TPM2B_PUBLIC,
    TPM2B_SENSITIVE_CREATE,
    TPMT_SIG_SCHEME,
    TPMT_TK_HASHCHECK,
)


def main(path: str, template: str, times: int) -> dict[str, list[float]]:
    esys = ESAPI(f"swtpm:path={path}")
    public, _ = TPM2B_PUBLIC.unmarshal(bytes.fromhex(template))
    sensitive = TPM2B_SENSITIVE_CREATE()
    scheme = TPMT_SIG_SCHEME(scheme=TPM2_ALG.ECDSA)
    scheme.details.any.hashAlg = TPM2_ALG.SHA256
    ticket = TPMT_TK_HASHCHECK(tag=TPM2_ST.HASHCHECK, hierarchy=TPM2_RH.NULL)
    took: dict[str, list[float]] = {"signature": [], "CreatePrimary": []}
    key, *_ = esys.create_primary(sensitive, public, ESYS_TR.OWNER)
    for _ in range(times):
        esys.flush_context(key)
        began = time.perf_counter()
        key, *_ = esys.create_primary(sensitive, public, ESYS_TR.OWNER)
        took["CreatePrimary"].append(time.perf_counter() - began)
    for _ in range(times):
        began = time.perf_counter()
        made = esys.sign(key, TPM2B_DIGEST(bytes(32)), scheme, ticket)
        halves = made.signature.ecdsa
        signature = bytes(halves.signatureR).rjust(32, b"\0") + bytes(halves.signatureS).rjust(32, b"\0")
        took["signature"].append(time.perf_counter() - began)
        assert len(signature) == 64
    esys.flush_context(key)
    esys.close()
    return took


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))

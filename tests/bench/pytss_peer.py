"""What tpm2-pytss takes for one Sign and one CreatePrimary: run by the system's Python, for which Debian packages it.

Arguments: the socket of a software TPM, a TPM2B_PUBLIC in hexadecimal, how often. Writes {"Sign": [seconds], …}.
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
    sensitive, digest = TPM2B_SENSITIVE_CREATE(), TPM2B_DIGEST(bytes(32))
    scheme = TPMT_SIG_SCHEME(scheme=TPM2_ALG.ECDSA)
    scheme.details.any.hashAlg = TPM2_ALG.SHA256
    ticket = TPMT_TK_HASHCHECK(tag=TPM2_ST.HASHCHECK, hierarchy=TPM2_RH.NULL)
    took: dict[str, list[float]] = {"Sign": [], "CreatePrimary": []}
    key, *_ = esys.create_primary(sensitive, public, ESYS_TR.OWNER)
    for _ in range(times):
        esys.flush_context(key)
        began = time.perf_counter()
        key, *_ = esys.create_primary(sensitive, public, ESYS_TR.OWNER)
        took["CreatePrimary"].append(time.perf_counter() - began)
    for _ in range(times):
        began = time.perf_counter()
        esys.sign(key, digest, scheme, ticket)
        took["Sign"].append(time.perf_counter() - began)
    esys.flush_context(key)
    esys.close()
    return took


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))

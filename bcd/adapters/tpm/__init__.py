"""The TPM 2.0 client: what the machine's own TPM is and holds, over a link that carries bytes."""

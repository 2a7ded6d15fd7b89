"""A software TPM in a file, for bcd-fakehw (decision 22): the commands of the TPM profile, answered as libtpms does."""

-- The tables as version 3 made them.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, secret_sha256 BLOB NOT NULL, site TEXT NOT NULL, role TEXT NOT NULL, node_id TEXT,
    allow_reclaim INTEGER NOT NULL, require_approval INTEGER NOT NULL, created INTEGER NOT NULL,
    expires INTEGER NOT NULL, uses INTEGER NOT NULL, used INTEGER NOT NULL CHECK (used <= uses), revoked INTEGER
) STRICT;
CREATE TABLE nodes (
    id TEXT PRIMARY KEY, site TEXT NOT NULL, role TEXT NOT NULL, generation INTEGER NOT NULL, machine TEXT NOT NULL,
    claims TEXT NOT NULL, daemon_version TEXT NOT NULL, token_id TEXT NOT NULL, created INTEGER NOT NULL,
    joined INTEGER NOT NULL, last_seen INTEGER, renew_asked INTEGER, renew_reason TEXT NOT NULL,
    ek TEXT NOT NULL DEFAULT '', ak_name BLOB
) STRICT;
CREATE INDEX nodes_machine ON nodes (machine) WHERE machine <> '';
CREATE INDEX nodes_ek ON nodes (ek) WHERE ek <> '';
CREATE TABLE certificates (
    serial TEXT PRIMARY KEY, node_id TEXT NOT NULL, generation INTEGER NOT NULL, state TEXT NOT NULL,
    state_since INTEGER NOT NULL, credential TEXT NOT NULL, parent TEXT NOT NULL, spki_sha256 BLOB NOT NULL,
    leaf_sha256 BLOB NOT NULL, issued INTEGER NOT NULL, not_before INTEGER NOT NULL, not_after INTEGER NOT NULL,
    first_used INTEGER, first_used_from TEXT NOT NULL, reason TEXT NOT NULL
) STRICT;
CREATE INDEX certificates_node ON certificates (node_id, issued);
CREATE INDEX certificates_open ON certificates (node_id) WHERE state IN ('issued', 'current');
CREATE INDEX certificates_key ON certificates (spki_sha256);
CREATE TABLE answers (
    credential TEXT NOT NULL, spki_sha256 BLOB NOT NULL, csr_sha256 BLOB NOT NULL, serial TEXT NOT NULL,
    chain TEXT NOT NULL, signed BLOB NOT NULL, not_after INTEGER NOT NULL,
    PRIMARY KEY (credential, spki_sha256)
) STRICT;
CREATE INDEX answers_end ON answers (not_after);
CREATE TABLE approvals (
    id TEXT PRIMARY KEY, credential TEXT NOT NULL, spki_sha256 BLOB NOT NULL, token_id TEXT NOT NULL,
    site TEXT NOT NULL, role TEXT NOT NULL, node_id TEXT, claims TEXT NOT NULL, daemon_version TEXT NOT NULL,
    reclaims INTEGER NOT NULL, source TEXT NOT NULL, asked INTEGER NOT NULL, state TEXT NOT NULL, decided INTEGER,
    UNIQUE (credential, spki_sha256)
) STRICT;
CREATE TABLE refusals (
    id TEXT PRIMARY KEY, at INTEGER NOT NULL, reason TEXT NOT NULL, source TEXT NOT NULL, attestor TEXT NOT NULL,
    token_id TEXT NOT NULL, claims TEXT NOT NULL, detail TEXT NOT NULL
) STRICT;
CREATE INDEX refusals_at ON refusals (at);
CREATE INDEX refusals_source ON refusals (source, at);
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, actor TEXT NOT NULL, kind TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit rows are only added'); END;
CREATE TRIGGER audit_is_not_removed BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit rows are only added'); END;
CREATE TABLE bundles (version INTEGER PRIMARY KEY, signed BLOB NOT NULL) STRICT;
CREATE TABLE restorations (at INTEGER NOT NULL) STRICT;
CREATE TABLE ek_roots (
    fingerprint TEXT PRIMARY KEY, der BLOB NOT NULL, added INTEGER NOT NULL, site TEXT, role TEXT,
    CHECK ((site IS NULL) = (role IS NULL))
) STRICT;
CREATE TABLE eks (
    ek TEXT PRIMARY KEY, site TEXT, role TEXT NOT NULL, node_id TEXT, denied INTEGER NOT NULL, note TEXT NOT NULL,
    listed INTEGER NOT NULL, CHECK (denied OR site IS NOT NULL)
) STRICT;
CREATE TABLE challenges (
    id TEXT PRIMARY KEY, ek TEXT NOT NULL, ek_name BLOB NOT NULL, ak_name BLOB NOT NULL,
    csr_sha256 BLOB NOT NULL, secret_sha256 BLOB NOT NULL, credential BLOB NOT NULL,
    encrypted_secret BLOB NOT NULL, nonce BLOB NOT NULL,
    pcr_bank INTEGER NOT NULL, pcr_selection BLOB NOT NULL, source TEXT NOT NULL, issued INTEGER NOT NULL,
    not_after INTEGER NOT NULL, answered INTEGER, serial TEXT NOT NULL
) STRICT;
CREATE INDEX challenges_request ON challenges (csr_sha256);
CREATE INDEX challenges_source ON challenges (source);
CREATE INDEX challenges_end ON challenges (not_after);
PRAGMA user_version = 3;

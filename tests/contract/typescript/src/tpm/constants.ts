/** TPM_ALG_ID, TPM_ECC_CURVE, TPM_ST, TPMA_OBJECT and TPM_GENERATED of TPM 2.0 Library Part 2. */
export const ALG = {
  rsa: 0x0001, sha1: 0x0004, aes: 0x0006, sha256: 0x000b, sha384: 0x000c, sha512: 0x000d, null: 0x0010,
  rsaes: 0x0015, ecdsa: 0x0018, ecdaa: 0x001a, ecc: 0x0023, cfb: 0x0043,
} as const;

export const P256 = 0x0003;
export const GENERATED = 0xff544347;
export const ATTEST = { certify: 0x8017, quote: 0x8018 } as const;

export const ATTRIBUTE = {
  fixedTpm: 1 << 1, stClear: 1 << 2, fixedParent: 1 << 4, sensitiveDataOrigin: 1 << 5, userWithAuth: 1 << 6,
  adminWithPolicy: 1 << 7, noDa: 1 << 10, restricted: 1 << 16, decrypt: 1 << 17, sign: 1 << 18,
} as const;

/** Bytes at most of a digest, of a name or of data that come with a command, of a coordinate, of an RSA modulus. */
export const MOST = { digest: 64, name: 66, data: 66, coordinate: 66, modulus: 512 } as const;
/** Selections of a list at most, and bytes of one. */
export const MOST_SELECTIONS = { count: 16, bytes: 32 } as const;

const DIGEST_LENGTHS: ReadonlyMap<number, number> = new Map([
  [ALG.sha1, 20], [ALG.sha256, 32], [ALG.sha384, 48], [ALG.sha512, 64],
]);

/** How long a bank's PCRs are; undefined for one that nobody is asked for. */
export const digestLength = (bank: number): number | undefined => DIGEST_LENGTHS.get(bank);

/** Limits for unpacking one archive. LIMIT_KEYS has their configuration keys. */
export interface UnpackLimits {
  /** Maximum files and folders, including folders that only appear in names of entries. Default 10,000. */
  readonly maxFiles: number
  /** Maximum bytes of all files together. Default 20 GiB. */
  readonly maxBytes: number
  /** Maximum bytes unpacked per byte of the archive; the first RATIO_FREE_BYTES are exempt. Default 100. */
  readonly maxRatio: number
  /** Seconds for the whole archive. Default 600. */
  readonly timeout: number
  /** Bytes that must stay free on the disk. Default 256 MiB. */
  readonly minFreeBytes: number
}

export const DEFAULT_UNPACK_LIMITS: UnpackLimits = {
  maxFiles: 10_000,
  maxBytes: 20 * 1024 ** 3,
  maxRatio: 100,
  timeout: 600,
  minFreeBytes: 256 * 1024 ** 2,
}

/** Bytes exempt from the ratio: small text files and weights of zeros compress well. */
export const RATIO_FREE_BYTES = 16 * 1024 ** 2

/** Configuration key of each limit, for error messages. */
export const LIMIT_KEYS = {
  maxFiles: 'max_archive_files',
  maxBytes: 'max_unpacked_size',
  maxRatio: 'max_archive_ratio',
  timeout: 'unpack_timeout',
  minFreeBytes: 'min_free_disk',
} as const satisfies Record<keyof UnpackLimits, string>

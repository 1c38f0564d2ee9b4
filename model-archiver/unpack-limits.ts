/** How much one archive may cost whoever unpacks it. Each limit has a key in the configuration, see LIMIT_KEYS. */
export interface UnpackLimits {
  /** Files and folders, those included that only stand in the name of another entry. Default 10,000. */
  readonly maxFiles: number
  /** Bytes of all files together. Default 20 GiB. */
  readonly maxBytes: number
  /** Bytes that come out for each byte of the archive. It does not count up to RATIO_FREE_BYTES. Default 100. */
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

/** What a small archive may unpack to whatever its ratio: text and weights of zeros compress well. */
export const RATIO_FREE_BYTES = 16 * 1024 ** 2

/** The configuration's key of each limit, for errors and for whoever reads the configuration. */
export const LIMIT_KEYS = {
  maxFiles: 'max_archive_files',
  maxBytes: 'max_unpacked_size',
  maxRatio: 'max_archive_ratio',
  timeout: 'unpack_timeout',
  minFreeBytes: 'min_free_disk',
} as const satisfies Record<keyof UnpackLimits, string>

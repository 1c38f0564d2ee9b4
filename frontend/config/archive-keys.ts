import { key, type Details } from './key-spec.ts'
import { SECONDS, integer } from './value-types.ts'

const OURS: Details = { ours: true }
const INT_MAX = 2_147_483_647

/**
 * Keys for archives (.mar, .tar.gz, .war): which are loaded, and the limits of one. Same limits as in
 * model-archiver/unpack-limits.ts.
 */
export const ARCHIVE_KEYS = {
  maxArchiveFiles: key(
    'max_archive_files',
    integer(1, INT_MAX),
    '10000',
    'Most files and folders of an archive.',
    OURS,
  ),
  maxUnpackedSize: key(
    'max_unpacked_size',
    integer(1, Number.MAX_SAFE_INTEGER),
    '21474836480',
    'Largest sum of the files of an archive, in bytes.',
    OURS,
  ),
  maxArchiveRatio: key(
    'max_archive_ratio',
    integer(1, INT_MAX),
    '100',
    'Most bytes that an archive unpacks to for each of its own bytes; what unpacks to 16 MiB or less may have any ratio.',
    OURS,
  ),
  unpackTimeout: key(
    'unpack_timeout',
    SECONDS,
    '600',
    'Limit on the time to hash and unpack an archive; the wait while two others are unpacked does not count.',
    OURS,
  ),
  minFreeDisk: key(
    'min_free_disk',
    integer(0, Number.MAX_SAFE_INTEGER),
    '268435456',
    'Bytes that stay free on the disk of TEMP: an archive that would leave fewer is refused.',
    OURS,
  ),
}

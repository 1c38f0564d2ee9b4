import { untrusted, wrongHash } from '../../model-archiver/hashed-file.ts'
import { ServeError } from '../../common/errors.ts'
import { ownValue } from '../../common/json.ts'
import type { Settings } from '../config/settings.ts'
import type { LocatedModel } from './located-model.ts'

/** What archives must be, from the settings and a register call (docs/trusted-archives.md). */

const SHA256 = /^[0-9a-f]{64}$/

/** The `sha256` of a register call in lowercase. @throws ServeError INVALID_ARGUMENT */
export function pinOf(text: string | undefined): string | undefined {
  const pin = text?.toLowerCase()
  if (pin === undefined || SHA256.test(pin)) return pin
  throw new ServeError('INVALID_ARGUMENT', 'Parameter sha256 must be 64 hexadecimal digits.')
}

/**
 * The pin of a version in the key `models`. A name with a pin loads only versions that have one: the version
 * is in the archive, so whoever changes the archive could choose another.
 * @returns undefined: the name has no pins
 * @throws ServeError UNTRUSTED_ARCHIVE when the version has no pin, or another archive
 */
export function checkConfiguredPin(
  { models }: Pick<Settings, 'models'>,
  { name, prepared: { version, archive } }: LocatedModel,
): string | undefined {
  const versions = ownValue(models, name) ?? {}
  const isPinned = Object.values(versions).some(({ sha256 }) => sha256 !== undefined)
  if (!isPinned) return undefined
  const pin = ownValue(versions, version)?.sha256
  if (pin === undefined)
    throw untrusted(
      `Model ${name} has a sha256 in the key models, but not for version ${version}. Add one if you trust it.`,
    )
  if (archive === undefined)
    throw untrusted(
      `Model ${name} must be an archive, not a folder, because it has a sha256 in the key models.`,
    )
  if (archive.sha256 !== pin) throw wrongHash(pin, archive.sha256)
  return pin
}

import { INVISIBLE, quoted } from '../common/escape-controls.ts'

/**
 * Names allowed in archives. Such a name stays inside the folder it is unpacked into, on every platform, and
 * means the same file on case-sensitive and case-insensitive disks.
 */

const MAX_NAME_BYTES = 1024
const MAX_PART_BYTES = 255
const MAX_DEPTH = 64

/** Device names of Windows, with any extension. */
const DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)( *\..*)?$/i

/** How the refusal of a name ends. */
export const INVISIBLE_NAME = 'the name has control characters or marks of direction'

/**
 * Why an entry's name is refused, as the end of a sentence; undefined when it is safe.
 * @param name as in the archive, with `/` as separator; a trailing `/` marks a folder
 */
export function entryNameProblem(name: string): string | undefined {
  if (name === '') return 'the name is empty'
  if (INVISIBLE.test(name)) return INVISIBLE_NAME
  if (name.includes('\\')) return 'the name has a backslash'
  if (name.startsWith('/')) return 'the name is absolute'
  if (/^[a-z]:/i.test(name)) return 'the name starts with a drive'
  if (name.includes(':')) return 'the name has a colon'
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `the name is longer than ${MAX_NAME_BYTES} bytes`
  const parts = name.replace(/\/$/, '').split('/')
  if (parts.length > MAX_DEPTH) return `the name is deeper than ${MAX_DEPTH} folders`
  for (const part of parts) {
    const problem = partProblem(part)
    if (problem !== undefined) return problem
  }
  return undefined
}

function partProblem(part: string): string | undefined {
  if (part === '') return 'a part of the name is empty'
  if (part === '..') return 'the name leads out of the archive (..)'
  if (part === '.') return 'a part of the name is a dot'
  // Windows drops trailing dots and spaces, so two names would become one.
  if (/[. ]$/.test(part)) return 'a part of the name ends in a dot or a space'
  if (DEVICE.test(part)) return 'the name is a device name'
  if (Buffer.byteLength(part) > MAX_PART_BYTES)
    return `a part of the name is longer than ${MAX_PART_BYTES} bytes`
  return undefined
}

/** A name for messages. */
export function shownName(name: string): string {
  return quoted(name, 200)
}

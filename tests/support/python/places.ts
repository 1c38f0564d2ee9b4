import { join } from 'node:path'

/** What the tests make once and keep; git ignores it. */
export const BUILD = join(import.meta.dirname, '..', '..', '..', '.build')

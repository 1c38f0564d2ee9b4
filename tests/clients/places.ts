import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url))
/** What is installed lies in here and is kept for the next run; git ignores it. */
export const BUILD = join(REPOSITORY, '.build', 'clients')
export const PROGRAMS = fileURLToPath(new URL('.', import.meta.url))
export const MODELS = fileURLToPath(new URL('models/', import.meta.url))
export const TENSORS = join(REPOSITORY, 'tests', 'support', 'handlers', 'tensors')

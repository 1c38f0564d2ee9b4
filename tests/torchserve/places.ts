import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url))
/** Everything that the harness makes lies in here; git ignores it. */
export const BUILD = join(REPOSITORY, '.build')
export const PYTHON_STAND_INS = fileURLToPath(new URL('python-models/', import.meta.url))
export const STAND_INS = fileURLToPath(new URL('models/', import.meta.url))

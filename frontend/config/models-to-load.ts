import type { ModelToLoad } from './settings.ts'
import { parsed, splitList, type ValueType } from './value-types.ts'

/** Model names as TorchServe allows them. Tells `name=location` from a URL with `=` in its query. */
const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9_\-.]*$/

/** `all`, or a comma list of `[name=]location`. */
export const MODELS_TO_LOAD: ValueType<'all' | readonly ModelToLoad[]> = parsed(
  'all | list',
  'all, or a comma-separated list of [name=]location',
  (text) => {
    if (text.toLowerCase() === 'all') return 'all'
    const models = splitList(text).map(modelToLoad)
    return models.every((model) => model !== undefined) ? models : undefined
  },
)

function modelToLoad(item: string): ModelToLoad | undefined {
  const equals = item.indexOf('=')
  const name = item.slice(0, Math.max(equals, 0)).trim()
  if (!MODEL_NAME.test(name)) return equals === 0 ? undefined : { location: item }
  const location = item.slice(equals + 1).trim()
  return location === '' ? undefined : { name, location }
}

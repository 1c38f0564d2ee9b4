import { isName, splitList } from '../../common/names.ts'
import type { ModelToLoad } from './settings.ts'
import { parsed, type ValueType } from './value-types.ts'

/** `all`, or a comma list of `[name=]location[#sha256=DIGITS]`. */
export const MODELS_TO_LOAD: ValueType<'all' | readonly ModelToLoad[]> = parsed(
  'all | list',
  'all, or a comma-separated list of [name=]location[#sha256=64 hexadecimal digits]',
  (text) => {
    if (text.toLowerCase() === 'all') return 'all'
    // TorchServe's docs/configuration.md: no models are loaded at the start.
    if (text.toLowerCase() === 'standalone') return []
    const models = splitList(text).map(modelToLoad)
    return models.every((model) => model !== undefined) ? models : undefined
  },
)

/** The pin of an item, as in the URLs of other package managers. */
const PIN = /#sha256=([^#]*)$/

function modelToLoad(text: string): ModelToLoad | undefined {
  const pin = PIN.exec(text)
  if (pin === null) return namedLocation(text)
  const sha256 = pin[1]!.toLowerCase()
  const model = namedLocation(text.slice(0, pin.index))
  return model !== undefined && /^[0-9a-f]{64}$/.test(sha256) ? { ...model, sha256 } : undefined
}

function namedLocation(item: string): ModelToLoad | undefined {
  const equals = item.indexOf('=')
  const name = item.slice(0, Math.max(equals, 0)).trim()
  // Also tells `name=location` from a URL with `=` in its query.
  if (!isName(name)) return equals === 0 ? undefined : { location: item }
  const location = item.slice(equals + 1).trim()
  return location === '' ? undefined : { name, location }
}

import type { ShownSetting } from '../../common/server-events.ts'
import type { LoadedSettings } from './build-settings.ts'
import { KEYS } from './keys.ts'
import { shownValue } from './secrets.ts'
import type { Settings } from './settings.ts'

/** Every key with its effective value and its source, in the order of docs/configuration.md. */
export function shownSettings({
  settings,
  origins,
  entries,
}: Pick<LoadedSettings, 'settings' | 'origins' | 'entries'>): ShownSetting[] {
  return (Object.keys(KEYS) as (keyof Settings)[]).map((setting) => {
    const { name, fallback, doc } = KEYS[setting]
    const text = plain(settings[setting]) ?? entries.get(name)?.text ?? fallback ?? ''
    return {
      name,
      value: text === '' ? undefined : shownValue(name, text),
      source: origins[setting],
      fallback: fallback === '' ? undefined : fallback,
      meaning: doc,
    }
  })
}

/** The text of a primitive value; undefined for others. */
function plain(value: Settings[keyof Settings]): string | undefined {
  return typeof value === 'object' || value === undefined ? undefined : String(value)
}

import { buildSettings, type LoadedSettings } from '../../frontend/config/build-settings.ts'
import { parseProperties, type Entry } from '../../frontend/config/properties.ts'
import { ServeError } from '../../common/errors.ts'

export interface Given {
  file?: string
  flags?: Entry[]
  env?: Record<string, string>
}

/** The settings that a file's text, flags and environment make. */
export function settingsOf({ file = '', flags = [], env = {} }: Given): LoadedSettings {
  return buildSettings({ file: parseProperties(file, 'config.properties', env), flags, env })
}

/** The message of the CONFIG error that `action` throws; fails when it throws anything else, or nothing. */
export function configError(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    if (error instanceof ServeError && error.code === 'CONFIG') return error.message
    throw error
  }
  throw new Error('No error was thrown')
}

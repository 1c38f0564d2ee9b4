import { isObject, ownValue } from '../../common/json.ts'

/** Readers for the runtime's settings; all throw an Error that names the key. */

export type Fields = Record<string, unknown>

export function text(config: Fields, name: string): string | undefined {
  const value = ownValue(config, name)
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' && value !== '') return value
  throw new Error(`${name} must be a non-empty string`)
}

export function whole(config: Fields, name: string, absent: number, max: number): number {
  const value = ownValue(config, name) ?? absent
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) return value
  throw new Error(`${name} must be a whole number up to ${max}`)
}

/** A URL without trailing slashes. */
export function baseUrl(config: Fields, name: string): string | undefined {
  const given = text(config, name)
  if (given === undefined) return undefined
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw new Error(`${name} must be an http(s) URL without user and query`)
  return given.replace(/\/+$/, '')
}

/**
 * The key in the variable that api_key_variable names. Only the default variable may be unset, for servers
 * without keys.
 */
export function key(config: Fields, usual: string, env: NodeJS.ProcessEnv): string | undefined {
  const variable = text(config, 'api_key_variable')
  const value = ownValue(env, variable ?? usual)
  if (variable !== undefined && !value)
    throw new Error(`api_key_variable must name a variable that is set for the server, found ${variable}`)
  return value?.trim() || undefined
}

export function record(value: unknown): Fields {
  return isObject(value) ? value : {}
}

import { Properties, PropertiesNodeType } from 'properties-file/parser'
import { ServeError } from '../../common/errors.ts'
import { ownValue } from '../../common/json.ts'
import { redactSecrets } from '../../common/texts.ts'

/** The text of one key, with its source. */
export interface Entry {
  readonly name: string
  readonly text: string
  /** `path:line` of a file, a flag, or a variable. */
  readonly origin: string
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The keys of a Java properties file, in file order. Replaces `$$NAME$$` in values by the environment
 * variable NAME, unless `env` is undefined.
 * @throws ServeError CONFIG for a malformed \u escape or a variable that is not set
 */
export function parseProperties(text: string, path: string, env: Environment | undefined): Entry[] {
  const entries: Entry[] = []
  for (const node of properties(text, path).nodes) {
    if (node.type !== PropertiesNodeType.PROPERTY) continue
    const origin = `${path}:${node.startingLineNumber}`
    const [name, value] = decoded(origin, () => [node.key.trim(), node.value.trim()])
    const replaced = env === undefined ? value : withVariables(value, env, `${origin}: ${oneLine(name)}`)
    entries.push({ name, text: replaced, origin })
  }
  return entries
}

/** Makes arbitrary text fit one line of a message: escapes control characters, and cuts it. */
export function oneLine(text: string, most = 120): string {
  const visible = text.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, (letter) => JSON.stringify(letter).slice(1, -1))
  const plain = visible.replace(/[\u007f-\u009f\u2028\u2029]/g, '?')
  return plain.length > most ? `${plain.slice(0, most)}...` : plain
}

function properties(text: string, path: string): Properties {
  return decoded(path, () => new Properties(text))
}

function decoded<T>(where: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw new ServeError('CONFIG', `${where}: ${oneLine((cause as Error).message)}`, { cause })
  }
}

function withVariables(value: string, env: Environment, where: string): string {
  return value.replace(/\$\$([^$]+)\$\$/g, (_, name: string) => {
    const replacement = ownValue(env, name)
    if (replacement !== undefined) return replacement
    throw new ServeError('CONFIG', `${where}: Invalid Environment Variable ${oneLine(name)}`)
  })
}

/** One line `key=value` of a Java properties file, escaped as Java's Properties.store does (UTF-8). */
export function formatProperty(name: string, value: string): string {
  return `${escapeKey(name)}=${escapeValue(value)}`
}

function escapeKey(text: string): string {
  return escapeText(text).replaceAll(' ', '\\ ')
}

/** Only leading blanks need an escape. */
function escapeValue(text: string): string {
  return escapeText(text).replace(/^ /, '\\ ')
}

const NAMED: ReadonlyMap<string, string> = new Map([
  ['\t', '\\t'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\f', '\\f'],
])

function escapeText(text: string): string {
  return text.replace(/[\\=:#!]/g, '\\$&').replace(/[\u0000-\u001f\u007f-\u009f]/g, escapeControl)
}

function escapeControl(letter: string): string {
  return NAMED.get(letter) ?? `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
}

const SECRET = /(^|_)(pass|password|secret)$/

/** The value of a key for display: one line, without passwords. */
export function shownValue(name: string, text: string): string {
  if (SECRET.test(name)) return '***'
  return oneLine(redactSecrets(text))
}

import { readFile } from 'node:fs/promises'
import { ServeError } from '../../common/errors.ts'
import { ownValue } from '../../common/json.ts'
import { oneLine, type Entry, type Environment } from './properties.ts'

/** Fields of the file, with the keys that they set. */
const FIELDS: Readonly<Record<string, string>> = {
  level: 'log_level',
  location: 'LOG_LOCATION',
  metricsLocation: 'METRICS_LOCATION',
  format: 'log_format',
  files: 'log_files',
  console: 'log_console',
}
const LISTS: ReadonlySet<string> = new Set(['files', 'console'])

/**
 * Reads the file of `--log-config`: YAML or JSON with the optional fields `level` (debug, info, warn, error),
 * `location` (folder of the log files), `metricsLocation` (folder of the metric log files), `format` (text,
 * json), `files` (list of log files to write) and `console` (list of logs for stdout); or a log4j2.xml of
 * TorchServe (log4j.ts), whose rest is a warning.
 * @throws ServeError CONFIG
 */
export async function readLogConfig(
  path: string,
  warnings: string[],
  env: Environment,
  by = '--log-config',
): Promise<Entry[]> {
  const origin = `${path} (from ${by})`
  const text = await read(path, origin)
  if (path.toLowerCase().endsWith('.xml')) return log4jEntries(text, origin, warnings, env)
  const content: unknown = await parse(text, origin)
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw new ServeError(
      'CONFIG',
      `${origin}: the file must be a map with the fields ${Object.keys(FIELDS).join(', ')}`,
    )
  }
  return Object.entries(content).map(([field, value]) => entry(field, value, origin))
}

async function log4jEntries(
  text: string,
  origin: string,
  warnings: string[],
  env: Environment,
): Promise<Entry[]> {
  const { readLog4j } = await import('./log4j.ts') // on demand: few starts need it
  try {
    const { keys, unread } = readLog4j(text, env)
    if (unread.length > 0) warnings.push(`${origin}: not read: ${oneLine(unread.join('; '), 500)}`)
    return [...keys].map(([name, value]) => ({ name, text: value, origin }))
  } catch (cause) {
    throw new ServeError('CONFIG', `${origin}: ${oneLine((cause as Error).message)}`, { cause })
  }
}

/** The log4j2.xml that the `vmargs` of a configuration name, as TorchServe's do. */
export function log4jFile(entries: readonly Entry[]): Entry | undefined {
  const vmargs = entries.findLast(({ name }) => name === 'vmargs')
  const file = /(?:^|\s)-Dlog4j2?\.configurationFile=(?:file:\/\/)?(\S+)/.exec(vmargs?.text ?? '')?.[1]
  return vmargs === undefined || file === undefined ? undefined : { ...vmargs, text: file }
}

function entry(field: string, value: unknown, origin: string): Entry {
  const name = ownValue(FIELDS, field)
  const text = LISTS.has(field) ? listText(value) : value
  if (name === undefined || typeof text !== 'string') {
    const problem =
      name === undefined ? 'is not supported' : `must be a ${LISTS.has(field) ? 'list of strings' : 'string'}`
    throw new ServeError('CONFIG', `${origin}: ${oneLine(field)} ${problem}`)
  }
  return { name, text: text.trim(), origin }
}

/** The list as the text of its key; an empty list becomes `none`. */
function listText(value: unknown): string | undefined {
  if (!Array.isArray(value) || !value.every((each) => typeof each === 'string')) return undefined
  return value.length === 0 ? 'none' : value.join(',')
}

async function read(path: string, origin: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new ServeError('CONFIG', `${origin} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

async function parse(text: string, origin: string): Promise<unknown> {
  const { parse: parseYaml } = await import('../../common/yaml.ts') // on demand: few starts need it
  try {
    return parseYaml(text, { prettyErrors: false })
  } catch (cause) {
    throw new ServeError('CONFIG', `${origin}: ${oneLine((cause as Error).message)}`, { cause })
  }
}

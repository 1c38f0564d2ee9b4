import { readFile } from 'node:fs/promises'
import { ServeError } from '../../common/errors.ts'
import { ownValue } from '../../common/own-keys.ts'
import { oneLine, type Entry } from './properties.ts'

/** Fields of the file, with the keys that they set. */
const FIELDS: Readonly<Record<string, string>> = {
  level: 'log_level',
  location: 'LOG_LOCATION',
  metricsLocation: 'METRICS_LOCATION',
  format: 'log_format',
  files: 'log_files',
}

/**
 * Reads the file of `--log-config`: YAML or JSON with the optional fields `level` (debug, info, warn, error),
 * `location` (folder of the log files), `metricsLocation` (folder of the metric log files), `format` (text,
 * json) and `files` (list of log files to write). TorchServe's log4j2 XML files only cause a warning.
 * @throws ServeError CONFIG
 */
export async function readLogConfig(path: string, warnings: string[]): Promise<Entry[]> {
  const origin = `${path} (from --log-config)`
  const text = await read(path, origin)
  if (path.toLowerCase().endsWith('.xml')) {
    warnings.push(`--log-config: ${path} has no effect here: log4j2 files configure the Java server`)
    return []
  }
  const content: unknown = await parse(text, origin)
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw new ServeError(
      'CONFIG',
      `${origin}: the file must be a map with the fields ${Object.keys(FIELDS).join(', ')}`,
    )
  }
  return Object.entries(content).map(([field, value]) => entry(field, value, origin))
}

function entry(field: string, value: unknown, origin: string): Entry {
  const name = ownValue(FIELDS, field)
  const text = field === 'files' ? listText(value) : value
  if (name === undefined || typeof text !== 'string') {
    const problem =
      name === undefined
        ? 'is not supported'
        : `must be a ${field === 'files' ? 'list of strings' : 'string'}`
    throw new ServeError('CONFIG', `${origin}: ${oneLine(field)} ${problem}`)
  }
  return { name, text: text.trim(), origin }
}

/** The list as the text of the key `log_files`; an empty list becomes `none`. */
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

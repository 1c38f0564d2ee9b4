import { ServeError } from '../common/errors.ts'
import { isObject } from '../common/json.ts'
import { inside } from './handler-entry.ts'
import { readSmallFile } from './manifest.ts'
import { parseYaml } from './yaml.ts'

/** Default name of the config file. */
const DEFAULT_CONFIG_FILE = 'model-config.yaml'

const MAX_CONFIG_BYTES = 1024 * 1024

/**
 * The content of a model's YAML file, TorchServe's model-config.yaml; `{}` when there is none.
 * @param configFile the manifest's name for it; absent: model-config.yaml, which may be missing
 * @throws ServeError INVALID_MODEL when a named file is missing, or the file is not a mapping
 */
export async function readModelConfig(
  modelDir: string,
  configFile?: string,
): Promise<Record<string, unknown>> {
  const name = configFile ?? DEFAULT_CONFIG_FILE
  const path = inside(modelDir, name)
  if (path === undefined) throw invalid(name, 'it must be inside the model')
  const text = await readSmallFile(path, MAX_CONFIG_BYTES)
  if (text === undefined && configFile === undefined) return {}
  if (text === undefined) throw invalid(name, 'the file does not exist')
  return mapping(name, text)
}

async function mapping(name: string, text: string): Promise<Record<string, unknown>> {
  let value: unknown
  try {
    value = await parseYaml(text)
  } catch (error) {
    throw invalid(name, (error as Error).message.split('\n')[0]!)
  }
  if (value === null || value === undefined) return {}
  if (isObject(value)) return value
  throw invalid(name, 'it must be a map')
}

function invalid(name: string, reason: string): ServeError {
  const publicCause = 'its settings are not valid'
  return new ServeError('INVALID_MODEL', `Model config file ${name} cannot be used: ${reason}.`, {
    publicCause,
  })
}

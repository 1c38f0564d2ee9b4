import { ServeError } from '../../common/errors.ts'
import { isObject } from '../../common/json.ts'
import { shownValue } from './secrets.ts'

/** A key that confined workers, which a program before them does instead (docs/worker-wrapper.md). */
interface RemovedKey {
  /** In config.properties; undefined: only a model's section `sandbox` had it. */
  readonly name?: string
  /** In the section `sandbox` of model-config.yaml; undefined: none. */
  readonly ofModel?: string
  /** The values that only loosened. Any other value is refused. */
  readonly loosened: RegExp
}

const ANY = /.*/s
const NONE = /(?!)/

const KEYS: readonly RemovedKey[] = [
  { name: 'sandbox', ofModel: 'mode', loosened: /^(off|false|default)$/i },
  { name: 'sandbox_by_model', loosened: ANY },
  { name: 'sandbox_read', ofModel: 'read', loosened: ANY },
  { name: 'sandbox_write', ofModel: 'write', loosened: ANY },
  { name: 'worker_env', ofModel: 'env', loosened: ANY },
  { name: 'model_env', loosened: ANY },
  { name: 'worker_network', ofModel: 'network', loosened: /^true$/i },
  { name: 'worker_memory', ofModel: 'memory', loosened: NONE },
  { name: 'worker_processes', ofModel: 'processes', loosened: NONE },
  { name: 'worker_open_files', ofModel: 'openFiles', loosened: NONE },
  { ofModel: 'headers', loosened: ANY },
]

const ADVICE = 'confine workers with worker_wrapper (docs/worker-wrapper.md)'
const NO_EFFECT = 'has no effect: workers have the rights and the environment of the server'

export const REMOVED_KEYS: ReadonlyMap<string, RemovedKey> = new Map(
  KEYS.flatMap((key) => (key.name === undefined ? [] : [[key.name, key]])),
)

/**
 * @returns the warning about a removed key of the server that only loosened
 * @throws ServeError CONFIG for a value that confined workers
 */
export function removedKey(name: string, text: string, origin: string): string {
  if (REMOVED_KEYS.get(name)!.loosened.test(text)) return `${origin}: ${name} ${NO_EFFECT}`
  throw new ServeError('CONFIG', `${origin}: ${name}=${shownValue(name, text)} is not supported: ${ADVICE}`)
}

/**
 * @param section the value of `sandbox` in model-config.yaml
 * @returns the warning about a section that only loosened; undefined: there is none
 * @throws ServeError INVALID_MODEL for a section that confined the workers
 */
export function removedSection(section: unknown): string | undefined {
  if (section === undefined || section === null) return undefined
  const entries = isObject(section) ? Object.entries(section) : [['mode', section] as const]
  for (const [key, value] of entries) {
    const removed = KEYS.find(({ ofModel }) => ofModel === key)
    if (removed?.loosened.test(String(value)) === true) continue
    throw new ServeError('INVALID_MODEL', `sandbox in model-config.yaml is not supported: ${ADVICE}`)
  }
  return `sandbox ${NO_EFFECT}; handler_credentials names the headers with credentials that handlers get`
}

import { createRequire } from 'node:module'
import type * as Zod from 'zod/mini'
import { closest } from '../../common/names.ts'
import { isObject, ownValue, setOwn } from '../../common/json.ts'
import { oneLine } from './properties.ts'
import type { Settings } from './settings.ts'
import { MAX_TIMER_SECONDS, type ValueType } from './value-types.ts'
import { wrapperWords } from './worker-wrapper.ts'

/** Settings of one version in the `models` key. */
export interface VersionSettings {
  /** Whether it becomes the default version at start. */
  readonly defaultVersion?: boolean
  readonly minWorkers?: number
  readonly maxWorkers?: number
  readonly batchSize?: number
  /** Milliseconds. */
  readonly maxBatchDelay?: number
  /** Seconds. */
  readonly responseTimeout?: number
  /** Seconds. */
  readonly startupTimeout?: number
  /** Ours: SHA-256 that the archive must have, in lowercase hex. */
  readonly sha256?: string
  /** Ours: takes the place of the key worker_wrapper; no words: no wrapper. */
  readonly workerWrapper?: readonly string[]
}

/** What the key `models` says of a version; {} when it says nothing. */
export function versionSettings(
  { models }: Pick<Settings, 'models'>,
  name: string,
  version: string,
): VersionSettings {
  return ownValue(ownValue(models, name) ?? {}, version) ?? {}
}

type Schema = ReturnType<typeof makeSchema>

/** The `models` key: JSON, `{name: {version: {minWorkers, ...}}}`. */
export const MODELS_JSON: ValueType<Readonly<Record<string, Readonly<Record<string, VersionSettings>>>>> = {
  label: 'JSON',
  expected: 'JSON of the form {"name": {"version": {"minWorkers": 1}}}',
  parse: (text, explain, warn) => {
    if (text === '{}') return {}
    const json = parseJson(text, explain)
    if (json === undefined || !areKnown(json, explain, warn)) return undefined
    const result = schema().models.safeParse(json)
    if (result.success) return result.data
    const { path, message } = result.error.issues[0]!
    const where = path.map(String).join('/')
    if (where !== '') explain(message === 'Invalid input' ? `see ${where}` : `${where}: ${message}`)
    return undefined
  },
}

function parseJson(text: string, explain: (why: string) => void): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    explain((error as Error).message)
    return undefined
  }
}

/** Names that mean another: those of the calls. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['minWorker', 'minWorkers'],
  ['maxWorker', 'maxWorkers'],
])
/** Fields of TorchServe's entries that only snapshots need. */
const INERT: readonly string[] = ['marName', 'runtimeType', 'parallelLevel']

/**
 * Checks the names of fields as those of keys are checked, and renames aliases. Leaves other forms to the
 * schema.
 * @returns false, after `explain`, for one that looks like a misspelling
 */
function areKnown(json: unknown, explain: (why: string) => void, warn: (what: string) => void): boolean {
  const known = schema().fields
  for (const [name, versions] of entriesOf(json))
    for (const [version, fields] of entriesOf(versions))
      for (const [field, value] of entriesOf(fields)) {
        const full = ALIASES.get(field)
        if (full !== undefined) {
          Reflect.deleteProperty(fields as object, field)
          setOwn(fields as Record<string, unknown>, full, value)
        } else if (!known.includes(field) && !INERT.includes(field)) {
          const meant = closest(field, known)
          const what = `${oneLine(`${name}/${version}`)}: unknown field ${oneLine(field)}`
          if (meant !== undefined) explain(`${what}: did you mean ${meant}?`)
          if (meant !== undefined) return false
          warn(`${what} is ignored`)
        }
      }
  return true
}

function entriesOf(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : []
}

let cached: Schema | undefined

/** Loads zod on first use: it is about a tenth of the start time, and few servers set `models`. */
function schema(): Schema {
  cached ??= makeSchema(createRequire(import.meta.url)('zod/mini') as typeof Zod)
  return cached
}

/** A pin, in lowercase. */
export function sha256(z: typeof Zod) {
  const digits = z
    .string()
    .check(z.toLowerCase(), z.regex(/^[0-9a-f]{64}$/, 'sha256 must be 64 hexadecimal digits'))
  return z.optional(digits)
}

function wrapper(z: typeof Zod) {
  return z.pipe(
    z.unknown(),
    z.transform((value, context): readonly string[] => {
      const words = wrapperWords(value)
      if (typeof words !== 'string') return words
      context.issues.push({ code: 'custom', message: words, input: value })
      return []
    }),
  )
}

function makeSchema(z: typeof Zod) {
  const integer = (min: number, max: number) => z.optional(z.int().check(z.minimum(min), z.maximum(max)))
  const seconds = z.optional(z.number().check(z.minimum(0.001), z.maximum(MAX_TIMER_SECONDS)))
  const fields = {
    defaultVersion: z.optional(z.boolean()),
    minWorkers: integer(0, 10_000),
    maxWorkers: integer(0, 10_000),
    batchSize: integer(1, 2_147_483_647),
    maxBatchDelay: integer(0, 2_147_483_647),
    responseTimeout: seconds,
    startupTimeout: seconds,
    sha256: sha256(z),
    workerWrapper: z.optional(wrapper(z)),
    worker_wrapper: z.optional(z.never('the field is workerWrapper')),
  }
  const version = z.object(fields).check(
    z.refine(({ minWorkers, maxWorkers }) => (minWorkers ?? 0) <= (maxWorkers ?? Infinity), {
      error: 'minWorkers must be at most maxWorkers',
    }),
  )
  return { models: z.record(z.string(), z.record(z.string(), version)), fields: Object.keys(fields) }
}

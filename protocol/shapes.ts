import { LISTED_METHODS, HANDLER_METHODS } from '../common/handler-methods.ts'
import { ownValue } from '../common/json.ts'

/**
 * The kind of a value in a map of a frame: a word of this list, one of several words, a list, or a map.
 * `texts` is a map of texts, `map` any map.
 */
type Kind =
  | 'text'
  | 'flag'
  | 'count'
  | 'uint32'
  | 'integer'
  | 'finite'
  | 'map'
  | 'texts'
  | readonly string[]
  | ListOf
  | Shape

class ListOf {
  readonly kind: Kind
  readonly most: number

  constructor(kind: Kind, most = Infinity) {
    this.kind = kind
    this.most = most
  }
}

/**
 * What a map must have. msgpack can yield any type for any key, so every field is checked. Keys that are not
 * listed are ignored. A key that ends with `?` may be absent.
 */
export class Shape {
  readonly #fields: readonly { key: string; kind: Kind; optional: boolean }[]

  constructor(fields: Readonly<Record<string, Kind>>) {
    this.#fields = Object.entries(fields).map(([name, kind]) => ({
      key: name.replace('?', ''),
      kind,
      optional: name.endsWith('?'),
    }))
  }

  fits(value: unknown): boolean {
    if (!isMap(value)) return false
    for (const { key, kind, optional } of this.#fields) {
      const field = ownValue(value, key)
      if (!(field === undefined ? optional : fits(field, kind))) return false
    }
    return true
  }
}

/** Checks the prototype, because a key may be `constructor`, for example in a client's header. */
function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

function fits(value: unknown, kind: Kind): boolean {
  switch (kind) {
    case 'text':
      return typeof value === 'string'
    case 'flag':
      return typeof value === 'boolean'
    case 'finite':
      return Number.isFinite(value)
    case 'integer':
      return Number.isSafeInteger(value)
    case 'count':
      return Number.isSafeInteger(value) && (value as number) >= 0
    case 'uint32':
      return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0xffffffff
    case 'map':
      return isMap(value)
    case 'texts':
      if (!isMap(value)) return false
      for (const text of Object.values(value)) if (typeof text !== 'string') return false
      return true
  }
  if (kind instanceof Shape) return kind.fits(value)
  if (!(kind instanceof ListOf)) return typeof value === 'string' && kind.includes(value)
  if (!Array.isArray(value) || value.length > kind.most) return false
  for (const item of value) if (!fits(item, kind.kind)) return false
  return true
}

/** Values of one metric in a frame, which take time one by one. The worker's library sends 256 at most. */
const MAX_METRIC_VALUES = 1024
const METRIC_KIND = ['counter', 'gauge', 'histogram']

const WIRE_ERROR = new Shape({
  code: 'text',
  message: 'text',
  'status?': 'count',
  'reason?': 'text',
  'param?': 'text',
  'detail?': 'text',
  'said?': 'text',
  'absent?': 'text',
  'retryAfterMs?': 'finite',
})

const IDS = new Shape({ ids: new ListOf('uint32') })

export const PREDICT = new Shape({
  requests: new ListOf(
    new Shape({
      method: HANDLER_METHODS,
      id: 'uint32',
      requestId: 'text',
      headers: 'text',
      parts: new ListOf(new Shape({ name: 'text', 'contentType?': 'text', size: 'count' })),
      window: 'count',
      'deadline?': 'finite',
      'moreInputs?': 'flag',
    }),
  ),
})

export const RESPONSE_HEAD = new Shape({
  'contentType?': 'text',
  'status?': 'count',
  'reason?': 'text',
  'headers?': 'texts',
})

/** The messages whose payload is one map. */
export const MAPS = {
  ready: new Shape({ protocolVersion: 'count', pid: 'count', rank: 'count', runtime: 'text' }),
  loaded: new Shape({ 'error?': WIRE_ERROR, 'methods?': new ListOf(LISTED_METHODS) }),
  failure: new Shape({ error: WIRE_ERROR }),
  log: new Shape({ level: ['debug', 'info', 'warn', 'error'], message: 'text', 'requestId?': 'text' }),
  metric: new Shape({
    name: 'text',
    kind: METRIC_KIND,
    unit: 'text',
    dimensions: 'texts',
    values: new ListOf('finite', MAX_METRIC_VALUES),
    requestIds: new ListOf('text', MAX_METRIC_VALUES),
  }),
  load: new Shape({
    modelName: 'text',
    modelVersion: 'text',
    modelDir: 'text',
    handlerPath: 'text',
    'handlerEntry?': 'text',
    'closedModules?': new ListOf('text'),
    manifest: 'map',
    modelConfig: 'map',
    batchSize: 'count',
    gpuId: 'integer',
    serverVersion: 'text',
    maxResponseBytes: 'count',
    maxUnsentBytes: 'count',
    decodeInput: 'flag',
    'maxJsonElements?': 'count',
    'continuousBatching?': 'flag',
    'sequenceHeaders?': new Shape({ id: 'text', start: 'text', end: 'text' }),
    'metrics?': new Shape({
      declared: new ListOf(
        new Shape({ name: 'text', kind: METRIC_KIND, unit: 'text', dimensions: new ListOf('text') }),
      ),
      others: 'flag',
    }),
    'limitMaxImagePixels?': 'flag',
    'envelope?': 'text',
  }),
  withdraw: IDS,
  withdrawn: IDS,
  sequenceEnd: new Shape({ sequence: 'text' }),
} as const

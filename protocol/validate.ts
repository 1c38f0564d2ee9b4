import { LISTED_METHODS, HANDLER_METHODS } from '../common/handler-methods.ts'
import { ownValue } from '../common/json.ts'

/**
 * The shapes of the maps in frames. msgpack can yield any type for any key, so every field is checked. Keys
 * that are not listed are ignored.
 */

type Fields = Record<string, unknown>
export type Check = (value: unknown) => boolean

const text: Check = (v) => typeof v === 'string'
const flag: Check = (v) => typeof v === 'boolean'
const count: Check = (v) => typeof v === 'number' && Number.isSafeInteger(v) && v >= 0
const integer: Check = (v) => typeof v === 'number' && Number.isSafeInteger(v)
const finite: Check = (v) => typeof v === 'number' && Number.isFinite(v)
/** Checks the prototype, because a key may be `constructor`, for example in a client's header. */
const fields: Check = (v) =>
  typeof v === 'object' && v !== null && Object.getPrototypeOf(v) === Object.prototype
const uint32: Check = (v) => count(v) && (v as number) <= 0xffffffff
const oneOf =
  (...words: string[]): Check =>
  (v) =>
    typeof v === 'string' && words.includes(v)
const optional =
  (check: Check): Check =>
  (v) =>
    v === undefined || check(v)
const texts: Check = (v) => {
  if (!fields(v)) return false
  return Object.values(v as Fields).every(text)
}

const shape = (checks: Record<string, Check>): Check => {
  const wanted = Object.entries(checks)
  return (v) => fields(v) && wanted.every(([key, check]) => check(ownValue(v as Fields, key)))
}

const list =
  (check: Check): Check =>
  (v) =>
    Array.isArray(v) && v.every(check)

/** Values of one metric in a frame, which take time one by one. The worker's library sends 256 at most. */
const MAX_METRIC_VALUES = 1024
const few =
  (check: Check): Check =>
  (v) =>
    list(check)(v) && (v as unknown[]).length <= MAX_METRIC_VALUES

const wireError = shape({
  code: text,
  message: text,
  status: optional(count),
  reason: optional(text),
  param: optional(text),
  detail: optional(text),
  said: optional(text),
  absent: optional(text),
  retryAfterMs: optional(finite),
})
const part = shape({ name: text, contentType: optional(text), size: count })
const request = shape({
  method: oneOf(...HANDLER_METHODS),
  id: uint32,
  requestId: text,
  headers: text,
  parts: list(part),
  window: count,
  deadline: optional(finite),
  moreInputs: optional(flag),
})

const metricKind = oneOf('counter', 'gauge', 'histogram')
const metricSpec = shape({ name: text, kind: metricKind, unit: text, dimensions: list(text) })

export const isResponseHead = shape({
  contentType: optional(text),
  status: optional(count),
  reason: optional(text),
  headers: optional(texts),
})

export const isPredict = shape({ requests: list(request) })

/** The messages whose payload is one map. */
export const MAPS = {
  ready: shape({ protocolVersion: count, pid: count, rank: count, runtime: text }),
  loaded: shape({ error: optional(wireError), methods: optional(list(oneOf(...LISTED_METHODS))) }),
  failure: shape({ error: wireError }),
  log: shape({
    level: oneOf('debug', 'info', 'warn', 'error'),
    message: text,
    requestId: optional(text),
  }),
  metric: shape({
    name: text,
    kind: metricKind,
    unit: text,
    dimensions: texts,
    values: few(finite),
    requestIds: few(text),
  }),
  load: shape({
    modelName: text,
    modelVersion: text,
    modelDir: text,
    handlerPath: text,
    handlerEntry: optional(text),
    closedModules: optional(list(text)),
    manifest: fields,
    modelConfig: fields,
    batchSize: count,
    gpuId: integer,
    serverVersion: text,
    maxResponseBytes: count,
    maxUnsentBytes: count,
    decodeInput: flag,
    maxJsonElements: optional(count),
    continuousBatching: optional(flag),
    sequenceHeaders: optional(shape({ id: text, start: text, end: text })),
    metrics: optional(shape({ declared: list(metricSpec), others: flag })),
    limitMaxImagePixels: optional(flag),
    envelope: optional(text),
  }),
  sequenceEnd: shape({ sequence: text }),
} as const satisfies Record<string, Check>

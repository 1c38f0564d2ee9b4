import { HANDLER_METHODS, LISTED_METHODS } from '../common/handler-methods.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import { ownValue } from '../common/own-keys.ts'

/**
 * Validates the shape of decoded messages. msgpack can yield any type for any key, so every field is checked.
 */

type Fields = Record<string, unknown>
type Check = (value: unknown) => boolean

const text: Check = (v) => typeof v === 'string'
const flag: Check = (v) => typeof v === 'boolean'
const bytes: Check = (v) => v instanceof Uint8Array
const count: Check = (v) => typeof v === 'number' && Number.isSafeInteger(v) && v >= 0
const integer: Check = (v) => typeof v === 'number' && Number.isSafeInteger(v)
const finite: Check = (v) => typeof v === 'number' && Number.isFinite(v)
/** Checks the prototype, because a key may be `constructor`, for example in a client's header. */
const fields: Check = (v) =>
  typeof v === 'object' && v !== null && Object.getPrototypeOf(v) === Object.prototype
const uint32: Check = (v) => count(v) && (v as number) <= 0xffffffff
const uint32s: Check = (v) => Array.isArray(v) && v.every(uint32)
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
const part = shape({ name: text, contentType: optional(text), data: bytes })
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

const fromWorker: Record<FromWorker['type'], Check> = {
  ready: shape({ protocolVersion: count, pid: count, rank: count, runtime: text }),
  loaded: shape({ error: optional(wireError), methods: optional(list(oneOf(...LISTED_METHODS))) }),
  response: shape({
    id: uint32,
    body: bytes,
    ts_stream_next: optional(oneOf('true', 'false')),
    contentType: optional(text),
    status: optional(count),
    reason: optional(text),
    headers: optional(texts),
  }),
  failure: shape({ id: uint32, error: wireError }),
  finished: shape({ ids: uint32s }),
  taken: shape({ id: uint32, inputs: count }),
  alive: shape({ id: uint32 }),
  withdrawn: shape({ ids: uint32s }),
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
  pong: shape({ nonce: count }),
}

const toWorker: Record<ToWorker['type'], Check> = {
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
  predict: shape({ requests: list(request), after: optional(flag) }),
  withdraw: shape({ ids: uint32s }),
  input: shape({ id: uint32, data: optional(bytes) }),
  cancel: shape({
    ids: uint32s,
    reason: oneOf('client left', 'deadline', 'timeout', 'shutdown', 'failed', 'operator'),
  }),
  credit: shape({ id: uint32, bytes: count }),
  sequenceEnd: shape({ sequence: text }),
  ping: shape({ nonce: count }),
  unload: shape({}),
}

const checked = (table: Record<string, Check>, message: unknown): boolean => {
  if (!fields(message)) return false
  const type = (message as Fields)['type']
  return typeof type === 'string' && ownValue(table, type)?.(message) === true
}

export function isFromWorker(message: unknown): message is FromWorker {
  return checked(fromWorker, message)
}

export function isToWorker(message: unknown): message is ToWorker {
  return checked(toWorker, message)
}

import fc from 'fast-check'
import { ERROR_CODES } from '../../common/errors.ts'
import { HANDLER_METHODS, LISTED_METHODS } from '../../common/handler-methods.ts'
import { CANCEL_REASONS, type FromWorker, type ToWorker } from '../../protocol/messages.ts'

const count = fc.nat()
const uint32 = fc.nat(0xffffffff)
/** Without -0, which msgpack does not keep apart from 0. */
const double = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)
const text = fc.string({ unit: 'binary', maxLength: 60 })
const bytes = fc.uint8Array({ maxLength: 300 }).map((data) => Buffer.from(data))
/**
 * Names that clients may choose. `constructor` and the like must work; `__proto__` is no own key of a plain
 * object.
 */
const name = fc
  .oneof(fc.constantFrom('constructor', 'toString', 'hasOwnProperty', 'length'), text)
  .filter((key) => key !== '__proto__')
const texts = fc.dictionary(name, text, { maxKeys: 6, noNullPrototype: true })
const json = fc.dictionary(
  name,
  fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.array(text)),
  {
    noNullPrototype: true,
  },
)
const wireError = fc.record(
  { code: fc.constantFrom(...ERROR_CODES), message: text, status: count, detail: text },
  { requiredKeys: ['code', 'message'], noNullPrototype: true },
)
const part = fc.record(
  { name: text, contentType: text, data: bytes },
  { requiredKeys: ['name', 'data'], noNullPrototype: true },
)
const request = fc.record(
  {
    method: fc.constantFrom(...HANDLER_METHODS),
    id: uint32,
    requestId: text,
    headers: text,
    parts: fc.array(part, { maxLength: 4 }),
    window: count,
    deadline: double,
    moreInputs: fc.constant(true),
  },
  { requiredKeys: ['method', 'id', 'requestId', 'headers', 'parts', 'window'], noNullPrototype: true },
)
const metricKind = fc.constantFrom('counter', 'gauge', 'histogram')
const metricSpec = fc.record(
  { name: text, kind: metricKind, unit: text, dimensions: fc.array(text, { maxLength: 3 }) },
  { noNullPrototype: true },
)

const message = (
  type: string,
  fields: Record<string, fc.Arbitrary<unknown>>,
  optional: string[] = [],
): fc.Arbitrary<unknown> =>
  fc.record(
    { type: fc.constant(type), ...fields },
    {
      requiredKeys: ['type', ...Object.keys(fields).filter((key) => !optional.includes(key))] as never[],
      noNullPrototype: true,
    },
  )

/** One generator per message of the union: a new message does not compile without one. */
export const fromWorker = {
  ready: message('ready', { protocolVersion: count, pid: count, rank: count, runtime: text }),
  loaded: message('loaded', { error: wireError, methods: fc.subarray([...LISTED_METHODS]) }, [
    'error',
    'methods',
  ]),
  response: message(
    'response',
    {
      id: uint32,
      body: bytes,
      ts_stream_next: fc.constantFrom('true', 'false'),
      contentType: text,
      status: count,
      reason: text,
      headers: texts,
    },
    ['ts_stream_next', 'contentType', 'status', 'reason', 'headers'],
  ),
  failure: message('failure', { id: uint32, error: wireError }),
  taken: message('taken', { id: uint32, inputs: count }),
  alive: message('alive', { id: uint32 }),
  finished: message('finished', { id: uint32 }),
  withdrawn: message('withdrawn', { ids: fc.array(uint32) }),
  log: message(
    'log',
    { level: fc.constantFrom('debug', 'info', 'warn', 'error'), message: text, requestId: text },
    ['requestId'],
  ),
  metric: message('metric', {
    name: text,
    kind: metricKind,
    unit: text,
    dimensions: texts,
    values: fc.array(double, { maxLength: 4 }),
    requestIds: fc.array(text, { maxLength: 4 }),
  }),
  pong: message('pong', { nonce: count }),
} satisfies Record<FromWorker['type'], fc.Arbitrary<unknown>>

export const toWorker = {
  load: message(
    'load',
    {
      modelName: text,
      modelVersion: text,
      modelDir: text,
      handlerPath: text,
      handlerEntry: text,
      closedModules: fc.array(text, { maxLength: 3 }),
      manifest: json,
      modelConfig: json,
      batchSize: count,
      gpuId: fc.integer(),
      serverVersion: text,
      maxResponseBytes: count,
      maxUnsentBytes: count,
      decodeInput: fc.boolean(),
      maxJsonElements: count,
      metrics: fc.record(
        { declared: fc.array(metricSpec, { maxLength: 3 }), others: fc.boolean() },
        { noNullPrototype: true },
      ),
    },
    ['handlerEntry', 'closedModules', 'metrics'],
  ),
  predict: message('predict', { requests: fc.array(request, { maxLength: 4 }), after: fc.constant(true) }, [
    'after',
  ]),
  withdraw: message('withdraw', { ids: fc.array(uint32) }),
  input: message('input', { id: uint32, data: bytes }, ['data']),
  cancel: message('cancel', { id: uint32, reason: fc.constantFrom(...CANCEL_REASONS) }),
  credit: message('credit', { id: uint32, bytes: count }),
  sequenceEnd: message('sequenceEnd', { sequence: text }),
  ping: message('ping', { nonce: count }),
  unload: message('unload', {}),
} satisfies Record<ToWorker['type'], fc.Arbitrary<unknown>>

export const anyFromWorker = fc.oneof(...Object.values(fromWorker)) as fc.Arbitrary<FromWorker>
export const anyToWorker = fc.oneof(...Object.values(toWorker)) as fc.Arbitrary<ToWorker>

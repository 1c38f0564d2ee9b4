import { afterEach, describe, expect, test } from '@jest/globals'
import { loadedHandler } from '../../backend-worker/loader.ts'
import type { LoadMessage } from '../../protocol/messages.ts'
import {
  handlerModule,
  request,
  startProcess,
  startWorker,
  type WorkerConnection,
} from '../support/worker-process.ts'

const open: WorkerConnection[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((worker) => worker.close()))
})

async function start(
  source: string,
  load: Partial<LoadMessage> & { file?: string } = {},
): Promise<WorkerConnection> {
  const { file, ...message } = load
  const worker = await (await startProcess()).connect()
  open.push(worker)
  const { error } = await worker.load(handlerModule(source, file), message)
  expect(error).toBeUndefined()
  return worker
}

async function ask(worker: WorkerConnection): Promise<string> {
  worker.predict(request(1, 'in'))
  return (await worker.answer(1)).items.join('|')
}

/** Each case under its first word, as one argument: a missing last one would look like jest's `done`. */
function named<T extends readonly [string, ...unknown[]]>(cases: T[]): [string, T][] {
  return cases.map((one) => [one[0], one])
}

describe('handlers that load', () => {
  const body = `(requests, context) { return requests.map(() => 'out ' + (this?.greeting ?? '')) }`
  const cases: [what: string, source: string, load?: Partial<LoadMessage> & { file?: string }][] = [
    [
      'a default class',
      `export default class { initialize(c) { this.greeting = c.modelConfig.greeting } handle${body} }`,
    ],
    [
      'a default class with handle as a property',
      `export default class { greeting = 'hello'; handle = (r) => ['out ' + this.greeting] }`,
    ],
    [
      'a class that extends BaseHandler',
      `import { BaseHandler } from 'torchserve-ts'
      export default class extends BaseHandler { preprocess(r) { return r.map(({ body }) => body) }
        async inference(x) { return x.map((t) => t.replace('in', 'out')) } postprocess(y) { return y.map((t) => t + ' hello') } }`,
    ],
    ['a default instance', `export default { greeting: 'hello', handle${body} }`],
    [
      'a default function with an initialize beside it',
      `let g; export const initialize = (c) => { g = c.modelConfig.greeting }
      export default () => ['out ' + g]`,
    ],
    ['an arrow function called handle', `export const handle = async () => ['out hello']`],
    [
      'the only class',
      `export class Other { method() {} } export class Mine { greeting = 'hello'; handle${body} }`,
    ],
    [
      'a named entry',
      `export function two() { return ['out hello'] } export default () => ['wrong']`,
      { handlerEntry: 'two' },
    ],
    [
      'a named class',
      `export class A { handle() { return ['wrong'] } } export class B { greeting = 'hello'; handle${body} }`,
      { handlerEntry: 'B' },
    ],
    ['CommonJS: an object', `module.exports = { greeting: 'hello', handle${body} }`, { file: 'h.cjs' }],
    ['CommonJS: a class', `module.exports = class { greeting = 'hello'; handle${body} }`, { file: 'h.cjs' }],
    [
      'CommonJS: a named function',
      `exports.other = () => ['out hello']`,
      { file: 'h.cjs', handlerEntry: 'other' },
    ],
    [
      'CommonJS: a compiled ES module',
      `Object.defineProperty(exports, '__esModule', { value: true })
      exports.default = class { greeting = 'hello'; handle${body} }`,
      { file: 'h.cjs' },
    ],
    [
      'a class in the old way',
      `function Old() { this.greeting = 'hello' } Old.prototype.handle = function ${body}
      module.exports = Old`,
      { file: 'h.cjs' },
    ],
  ]
  test.each(named(cases))('%s', async (_what, [, source, load]) => {
    expect(await ask(await start(source, load))).toBe('out hello')
  })
})

describe('handlers that do not load', () => {
  const cases: [what: string, source: string, code: string, message: string, load?: Partial<LoadMessage>][] =
    [
      ['no handler', `export const x = 1`, 'INVALID_MODEL', 'must export a class with handle'],
      [
        'a default class without handle',
        `export default class {}`,
        'INVALID_MODEL',
        'must export a class with handle',
      ],
      [
        'two classes',
        `export class A { handle() {} } export class B { handle() {} }`,
        'INVALID_MODEL',
        '2 classes',
      ],
      [
        'an entry that is missing',
        `export function handle() {}`,
        'INVALID_MODEL',
        '"nope"',
        { handlerEntry: 'nope' },
      ],
      [
        'an entry that every object has',
        `export function handle() {}`,
        'INVALID_MODEL',
        '"toString"',
        { handlerEntry: 'toString' },
      ],
      ['a syntax error', `export default class {`, 'INVALID_MODEL', 'cannot be parsed'],
      ['a missing file', ``, 'INVALID_MODEL', 'Handler not found', { handlerPath: '/nowhere/h.js' }],
      [
        'a missing package',
        `import 'not-there-at-all'; export function handle() {}`,
        'WORKER_START_FAILED',
        'not-there-at-all',
      ],
      ['a module that throws', `throw new Error('no weights')`, 'WORKER_START_FAILED', 'no weights'],
      [
        'a constructor that throws',
        `export default class { constructor() { throw new Error('boom') } handle() {} }`,
        'WORKER_START_FAILED',
        'boom',
      ],
      [
        'an initialize that throws',
        `export default class { async initialize() { throw new TypeError('bad weights') } handle() {} }`,
        'WORKER_START_FAILED',
        'bad weights',
      ],
      [
        'an initialize without memory',
        `export default class { initialize() { new ArrayBuffer(2 ** 53 - 1) } handle() {} }`,
        'OUT_OF_MEMORY',
        'allocation',
      ],
    ]
  test.each(named(cases))(
    '%s: the reason is told, and the worker leaves',
    async (_what, [, source, code, message, load]) => {
      const worker = await (await startProcess()).connect()
      const { error } = await worker.load(handlerModule(source), load)
      expect(error).toMatchObject({ code, message: expect.stringContaining(message) })
      expect(await worker.process.exited).toBe(1)
      expect(worker.process.stderr).toContain('The handler did not load')
    },
  )
})

test('initialize sees a context without requests, whose signal does not abort', async () => {
  const worker = await startWorker(`
    let seen
    export const initialize = async (context) => {
      seen = [context.requestIds, context.signal.aborted, context.explain, context.modelName]
      context.logger.info('loading')
      context.metrics.addCounter('Loads', 1)
    }
    export const handle = () => [seen]`)
  open.push(worker)
  expect(worker.received.map(({ type }) => type)).toEqual(['ready', 'log', 'metric', 'loaded'])
  expect(JSON.parse(await ask(worker))).toEqual([[], false, false, 'm'])
})

test('a handler without describe answers an empty object', async () => {
  const worker = await startWorker(`export const handle = () => ['']`)
  open.push(worker)
  worker.send({ type: 'predict', requests: [request(1, {}, { method: 'describe' })] })
  expect((await worker.answer(1)).items).toEqual(['{}'])
})

test('requests share a call only with those that want the same method, and a header of the client means nothing', async () => {
  const worker = await startWorker(`
    let running = 0
    const run = async (what, requests) => {
      if (++running > 1) throw new Error('two at once')
      await new Promise((resolve) => setTimeout(resolve, 5))
      running--
      return requests.map(({ body }) => what + body)
    }
    export default { handle: (r) => run('handled ', r), explain: (r, c) => run('explained ' + c.explain + ' ', r) }`)
  open.push(worker)
  const explain = { method: 'explain' } as const
  const headers = { explain: 'True' }
  worker.predict(
    request(1, 1),
    request(2, 2, explain),
    request(3, 3, { headers }),
    request(4, 4, explain),
    request(5, 5, { method: 'describe' }),
  )
  const answers = await Promise.all([1, 2, 3, 4, 5].map((id) => worker.answer(id)))
  expect(answers.map(({ items }) => items[0])).toEqual([
    'handled 1',
    'explained true 2',
    'handled 3',
    'explained true 4',
    '{}',
  ])
})

test('without decoding, the handler gets bytes', async () => {
  const worker = await startWorker(
    `export const handle = ([{ body }]) => [String(Buffer.isBuffer(body)) + body]`,
    {},
    {
      decodeInput: false,
    },
  )
  open.push(worker)
  expect(await ask(worker)).toBe('true"in"')
})

test.each([
  ['predict', ['predict']],
  ['predictStream', ['predictStream']],
  ['chatCompletions', ['chatCompletions']],
  ['handle', ['handle']],
])('a handler with only %s lists no other method', (method, methods) => {
  expect(loadedHandler({ [method]: () => undefined }).methods).toEqual(methods)
})

describe('functions beside the handler that nothing calls', () => {
  const cases: [what: string, source: string, names: string | undefined, entry?: string][] = [
    [
      'are named, with a class',
      `export default class { handle() {} } export const predict = () => {}; export function explain() {}`,
      'explain, predict',
    ],
    [
      'are named, with a default function',
      `export default () => ['']; export function handle() {}`,
      'handle',
    ],
    [
      'are none: the hooks of a function',
      `export function handle() {} export function predict() {}`,
      undefined,
    ],
    [
      'are none: another handler, for another entry',
      `export function two() {} export function handle() {}`,
      undefined,
      'two',
    ],
    ['are none: CommonJS', `module.exports = { handle() { return [''] }, predict() {} }`, undefined],
  ]
  test.each(named(cases))('%s', async (_what, [, source, names, handlerEntry]) => {
    const file = source.startsWith('module') ? 'h.cjs' : undefined
    const worker = await start(source, { handlerEntry, file })
    const warnings = worker.received.flatMap((message) => (message.type === 'log' ? [message] : []))
    expect(
      warnings.map(({ level, message }) => [level, /exports (.*), which nothing calls/.exec(message)?.[1]]),
    ).toEqual(names === undefined ? [] : [['warn', names]])
  })
})

test('a second load is refused and ends the connection', async () => {
  const worker = await startWorker(`export const handle = () => ['']`)
  void worker.load('/other.js').catch(() => undefined)
  expect(await worker.process.exited).toBe(1)
})

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createArchive } from '../../model-archiver/pack.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** A handler with one mistake, and what its author then reads. */
interface Mistake {
  readonly what: string
  readonly source: string
  readonly config?: string
  /** Status and text of the client's answer. */
  readonly answer: readonly [status: number, text: string]
  /** What the log has besides: one line each, in any order. */
  readonly log: readonly string[]
}

const MISTAKES: readonly Mistake[] = [
  {
    what: 'wrong_shape',
    source: `export const handle = () => 'hello'`,
    answer: [503, 'Invalid model predict output'],
    log: [
      `INVALID_OUTPUT: The handler returned a string; it must return an array with one item per request: [ 'hello' ]`,
    ],
  },
  {
    what: 'missing_await',
    source: `const one = async () => 'x'\nexport const handle = (requests: unknown[]) => requests.map(one)`,
    answer: [503, 'Unsupported model output data type.'],
    log: [
      'INVALID_OUTPUT: An item is a Promise, so an await is missing: return await Promise.all(items), or await it before you yield it',
    ],
  },
  {
    what: 'map_item',
    source: `export const handle = () => [new Map([['label', 'cat']])]`,
    answer: [503, 'Unsupported model output data type.'],
    log: [
      'INVALID_OUTPUT: An item is a Map, which JSON cannot hold: it would become {}; use Object.fromEntries(map)',
    ],
  },
  {
    what: 'nested_array',
    source: `export const handle = () => [{ boxes: [{ at: new Float32Array([0.5]) }], scores: new Map() }]`,
    answer: [200, '"0": 0.5'],
    log: [
      'An item has a Float32Array at .boxes[0].at, which JSON writes as an object with a key for each number; use [...array]',
    ],
  },
  {
    what: 'nested_map',
    source: `export const handle = () => [{ label: 'cat', scores: new Map([['cat', 1]]) }]`,
    answer: [200, '"scores": {}'],
    log: ['An item has a Map at .scores, which JSON cannot hold: it becomes {}; use Object.fromEntries(map)'],
  },
  {
    what: 'nested_nan',
    source: `export const handle = () => [{ score: 0 / 0, at: new Date(0) }]`,
    answer: [200, '"score": null'],
    log: ['An item has NaN at .score, which JSON cannot hold: it becomes null'],
  },
  {
    what: 'not_a_number',
    source: `export const handle = () => [0 / 0]`,
    answer: [503, 'Unsupported model output data type.'],
    log: ['INVALID_OUTPUT: An item is NaN, which JSON cannot hold: it would become null'],
  },
  {
    what: 'throws_at_load',
    source: `const model: { layers: [] } | undefined = undefined\nexport const initialize = () => model!.layers.length\nexport const handle = () => ['x']`,
    answer: [
      503,
      "cannot serve: the handler threw while it loaded. The server's log has the whole cause under the id",
    ],
    log: [`): Cannot read properties of undefined (reading 'layers')`, 'throws_at_load/handler.ts:2:'],
  },
  {
    what: 'missing_weights',
    source: `import { readFileSync } from 'node:fs'\nconst weights = readFileSync('weights.bin')\nexport const handle = () => [weights]`,
    answer: [
      503,
      "cannot serve: the handler threw while it loaded. The server's log has the whole cause under the id",
    ],
    log: [
      "open 'weights.bin'. Relative paths begin in the folder of the model (context.properties.modelDir), here /",
    ],
  },
  {
    what: 'missing_package',
    source: `import { x } from 'no-such-package-here'\nexport const handle = () => [x]`,
    answer: [
      503,
      "cannot serve: the handler threw while it loaded. The server's log has the whole cause under the id",
    ],
    log: [
      'The package no-such-package-here is not installed. Install it where torchserve-ts is installed: npm install no-such-package-here',
    ],
  },
  {
    what: 'missing_packages',
    source: `import { x } from 'no-such-package-here'\nimport y from '@no-such/scope'\nexport const handle = () => [x, y]`,
    answer: [
      503,
      "cannot serve: the handler threw while it loaded. The server's log has the whole cause under the id",
    ],
    log: [
      'The packages @no-such/scope and no-such-package-here are not installed. Install them where torchserve-ts is installed: npm install @no-such/scope no-such-package-here',
    ],
  },
  {
    what: 'syntax_error',
    source: `export const handle = () => ['x'`,
    answer: [503, "cannot serve: it has no valid handler. The server's log has the whole cause under the id"],
    log: [
      'Failed to load model: syntax_error: Handler handler.ts cannot be bundled: handler.ts:2: Expected "]" but found end of file',
    ],
  },
  {
    what: 'never_returns',
    source: `export const handle = () => new Promise(() => undefined)`,
    config: 'responseTimeout: 1',
    answer: [500, 'Timed out after 1 s: no response (firstResponseTimeout)'],
    log: [
      'timed out: the handler has not answered after',
      'Look for a loop without an end, or an await of what never comes.',
    ],
  },
  {
    what: 'infinite_loop',
    source: `export const handle = () => { for (;;); }`,
    config: 'responseTimeout: 1\ncancelGraceMs: 500',
    answer: [500, 'Timed out after 1 s: no response (firstResponseTimeout)'],
    log: [
      'timed out: the handler has not answered after',
      'Worker died: Killed: a cancelled request ran for longer than 500 ms; the worker is restarted',
    ],
  },
  {
    what: 'wrong_types',
    source: `export const handle = () => [{ count: { toJSON() { throw new TypeError('No count yet') } } }]`,
    answer: [503, 'Unsupported model output data type.'],
    log: ['INVALID_OUTPUT: An item must be a string, bytes, or a value that JSON can hold: No count yet'],
  },
  {
    what: 'too_large',
    source: `export const handle = () => ['x'.repeat(200_000)]`,
    answer: [500, 'A response of 200000 bytes is larger than max_response_size (100000)'],
    log: ['RESPONSE_TOO_LARGE: A response of 200000 bytes is larger than max_response_size (100000)'],
  },
  {
    what: 'prints',
    source: `export const handle = () => { process.stdout.write('no newline'); return ['x'] }`,
    answer: [200, 'x'],
    log: ['MODEL_LOG - no newline'],
  },
  {
    what: 'throws',
    source: `export const handle = (requests: { data: { text: string } }[]) => requests.map((r) => r.data.text.length)`,
    answer: [503, 'Prediction failed'],
    log: [
      `HANDLER_FAILED: TypeError: Cannot read properties of undefined (reading 'text')`,
      'throws/handler.ts:1:',
    ],
  },
  {
    what: 'no_handle',
    source: `export class Model { run() { return ['x'] } }`,
    answer: [503, "cannot serve: it has no valid handler. The server's log has the whole cause under the id"],
    log: [
      'The handler handler.ts must export a class with handle, or a function called handle; it exports Model',
    ],
  },
  {
    what: 'predict_for_a_list',
    source: `export class Model { predict() { return ['x'] } }`,
    answer: [503, 'The inference response of the handler is not valid: it must have outputs'],
    log: ['For a list with one item per request, call the method handle.'],
  },
  {
    what: 'arguments_of_send',
    source:
      `import { sendIntermediatePredictResponse as send } from 'torchserve-ts'\n` +
      `export const handle = async () => { await (send as (ret: string[]) => Promise<void>)(['a']); return ['x'] }`,
    answer: [503, 'Prediction failed'],
    log: [
      `context must be the context of the current call of handle; call it as sendIntermediatePredictResponse([item], context.requestIds, '', 200, context)`,
    ],
  },
]

const store = tempDir()
let server: Server

beforeAll(async () => {
  for (const { what, source, config } of MISTAKES) {
    mkdirSync(join(store, what))
    writeFileSync(join(store, what, 'handler.ts'), `${source}\n`)
    if (config !== undefined) writeFileSync(join(store, what, 'model-config.yaml'), `${config}\n`)
  }
  mkdirSync(join(store, 'weights_only'))
  writeFileSync(join(store, 'weights_only', 'weights.bin'), 'w')
  server = await startServer({
    modelStore: store,
    models: ['all'],
    config: { max_response_size: 100_000, default_workers_per_model: 1 },
  })
})

describe('a handler with a typical mistake: answer and log are enough to mend it', () => {
  test.each(MISTAKES)('$what', async ({ what, answer: [status, text], log }) => {
    const path = `/predictions/${what}`
    const ask = () =>
      rawRequest(server.ports.inference, path, { headers: { 'content-type': 'text/plain' }, body: 'hi' })
    // Until its worker has tried to load it.
    const got = await server.until(ask, (each) => each.status === status)
    expect(got.body.replaceAll('\\"', '"')).toContain(text)
    for (const words of log) await server.lines(words)
  })

  test('a folder without a handler is skipped, and the log says what it lacks', async () => {
    await server.lines('weights_only is skipped: it has no handler.ts (or .js, .mjs, .cjs, .py), .gguf file,')
    const { json } = await server.manage('POST', '/models?url=weights_only')
    expect(json).toMatchObject({
      code: 400,
      message: expect.stringMatching(/^The folder weights_only is not a model: it has no handler\.ts/),
    })
  })

  test('the id that clients read while a load is tried again leads to the line with the stack', async () => {
    const ids = server.output.flatMap(
      (line) => /throws_at_load.*Load failed \(id (\w+)\)/.exec(line)?.[1] ?? [],
    )
    expect(new Set(ids).size).toBe(1)
  })

  test('the texts are in docs/troubleshooting.md', () => {
    const page = readFileSync(join(REPOSITORY, 'docs', 'troubleshooting.md'), 'utf8')
    for (const { answer, log } of MISTAKES)
      for (const words of [answer[1], ...log]) expect(page).toContain(words)
  })
})

test('the stack of an archive leads to the lines of its author, in the name of the archive', async () => {
  const folder = tempDir()
  writeFileSync(
    join(folder, 'handler.ts'),
    ['interface Thing {', '  text: string', '}', "import { textOf } from './inner.ts'"]
      .concat('export const handle = (things: Thing[]): string[] => things.map(textOf)')
      .join('\n'),
  )
  writeFileSync(
    join(folder, 'inner.ts'),
    'export function textOf(): string {\n  throw new Error("no text")\n}\n',
  )
  const exportPath = join(folder, 'store')
  mkdirSync(exportPath)
  const handler = join(folder, 'handler.ts')
  await createArchive({ modelName: 'packed', version: '1.0', handler, exportPath })
  const packed = await startServer({ modelStore: exportPath, models: ['packed.mar'] })
  await packed.ready('packed')
  expect((await rawRequest(packed.ports.inference, '/predictions/packed', { body: 'x' })).status).toBe(503)
  const all = await packed.until(
    async () => packed.output.join('\n'),
    (output) => output.includes('packed.mar/handler.ts'),
  )
  expect(all).toMatch(/at textOf \(packed\.mar\/inner\.ts:2:9\)/)
  expect(all).toMatch(/at (\S+ )?\(?packed\.mar\/handler\.ts:5:/)
  expect(all).not.toMatch(/^ +at .*models\/[0-9a-f]{32}/m)
  await packed.stop()
})

afterAll(() => server.stop())

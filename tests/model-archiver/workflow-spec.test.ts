import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { ServeError } from '../../common/errors.ts'
import { parseWorkflowSpec } from '../../model-archiver/workflow-spec.ts'

const DEFAULTS = {
  minWorkers: 1,
  maxWorkers: 1,
  batchSize: 1,
  maxBatchDelay: 50,
  retryAttempts: 1,
  timeoutMs: 10_000,
}

describe('a workflow specification', () => {
  test('has TorchServe’s defaults', async () => {
    const spec = await parseWorkflowSpec('models: {m: {url: m.mar}}\ndag: {pre: [m]}')
    expect(spec.defaults).toEqual(DEFAULTS)
    expect([...spec.nodes.values()]).toEqual([
      { name: 'pre', url: undefined, ...DEFAULTS },
      { name: 'm', url: 'm.mar', ...DEFAULTS },
    ])
  })

  test('gives a model its own settings, else the global ones, wherever they stand', async () => {
    const { nodes } = await parseWorkflowSpec(`
models:
  m1: {url: m1.mar, batch-size: 8, timeout-ms: 5}
  batch-size: 4
  retry-attempts: 0
  min-workers: 2
  max-workers: 3
  max-batch-delay: 0
dag:
  pre: [m1]
`)
    const global = { minWorkers: 2, maxWorkers: 3, maxBatchDelay: 0, retryAttempts: 0 }
    expect(nodes.get('m1')).toMatchObject({ ...global, batchSize: 8, timeoutMs: 5 })
    expect(nodes.get('pre')).toMatchObject({ ...global, batchSize: 4, timeoutMs: 10_000 })
  })

  test('shows its graph as Java writes a map', async () => {
    const { dagText } = await parseWorkflowSpec('dag:\n  pre: [a, b]\n  a: [post]\n  b: [post]\n  post: []\n')
    expect(dagText).toBe('{pre=[a, b], a=[post], b=[post], post=[]}')
  })

  test('may leave the list of a leaf empty, in any way', async () => {
    for (const list of ['[]', '', '[""]', '[null]'])
      expect((await parseWorkflowSpec(`dag:\n  a: ${list}\n`)).dag.leaves).toEqual(['a'])
  })

  test.each([
    ['', 'the specification must be a map'],
    ['- a', 'the specification must be a map'],
    ['models: {}', 'dag must be a map'],
    ['dag: {}', 'dag is empty'],
    ['dag: [a]', 'dag must be a map'],
    ['dag: {a: b}', 'dag: a must be a list of nodes'],
    ['dag: {a: [[b]]}', '["b"] is not a valid name of a node'],
    ['dag: {"../a": []}', '"../a" is not a valid name of a node'],
    ['dag: {__proto__: []}', '"__proto__" is not a valid name of a node'],
    ['models: {m: {}}\ndag: {m: []}', 'models: m: url must be a non-empty string'],
    ['models: {m: x.mar}\ndag: {m: []}', 'models: m must be a map'],
    [
      'models: {batch-size: many}\ndag: {a: []}',
      'models: batch-size must be a whole number from 1 to 2147483647',
    ],
    [
      'models: {m: {url: u, timeout-ms: 0}}\ndag: {m: []}',
      'models: m: timeout-ms must be a whole number from 1 to 2147483647',
    ],
  ])('%j is refused', async (text, problem) => {
    await expect(parseWorkflowSpec(text)).rejects.toMatchObject({
      code: 'INVALID_WORKFLOW',
      message: `The workflow specification cannot be used: ${problem}.`,
    })
  })

  test('that is no YAML, or an alias bomb, is refused', async () => {
    const bomb = Array.from({ length: 20 }, (_, i) =>
      i === 0 ? 'a0: &a0 [x, x, x]' : `a${i}: &a${i} [*a${i - 1}, *a${i - 1}, *a${i - 1}]`,
    ).join('\n')
    for (const text of ['dag: [', 'a: b: c', bomb])
      await expect(parseWorkflowSpec(text)).rejects.toMatchObject({
        code: 'INVALID_WORKFLOW',
        message: expect.stringMatching(/^Failed to parse yaml\. /),
      })
  })

  test('of any content is parsed, or refused with a proper error', async () => {
    const leaf = fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.array(fc.string({ maxLength: 4 })))
    const content = fc.record({
      models: fc.oneof(leaf, fc.dictionary(fc.string(), fc.oneof(leaf, fc.dictionary(fc.string(), leaf)))),
      dag: fc.oneof(leaf, fc.dictionary(fc.string({ maxLength: 4 }), leaf)),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string(),
          content.map((value) => stringify(value)),
        ),
        async (text) => {
          await parseWorkflowSpec(text).catch((error: unknown) => {
            expect(error).toBeInstanceOf(ServeError)
            expect(['INVALID_WORKFLOW', 'INVALID_DAG']).toContain((error as ServeError).code)
          })
        },
      ),
    )
  })
})

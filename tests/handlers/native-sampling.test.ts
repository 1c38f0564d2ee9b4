import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { prepareSampling, type NativeContext } from '../../handlers/gguf/native-sampling.ts'

/** A context of which every sampling waits until it is told to end. */
class Context {
  readonly running: { index: unknown; end: () => void; fail: () => void }[] = []
  readonly _ctx: NativeContext

  constructor() {
    const native: NativeContext = {
      decodeBatch: () => Promise.resolve(),
      sampleToken: (index) =>
        new Promise((resolve, reject) => {
          this.running.push({ index, end: () => resolve(index), fail: () => reject(new Error('sampling')) })
        }),
    }
    // As the runtime's are.
    this._ctx = Object.create(Object.freeze(native)) as NativeContext
  }

  get indexes(): unknown[] {
    return this.running.map(({ index }) => index)
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('the first of a batch is sampled alone, the others together after it, and so in every batch', async () => {
  const context = new Context()
  prepareSampling(context)
  for (let batch = 0; batch < 2; batch += 1) {
    context.running.length = 0
    await context._ctx.decodeBatch()
    const sampled = Promise.all([7, 8, 9].map((index) => context._ctx.sampleToken(index)))
    await turn()
    expect(context.indexes).toEqual([7])
    context.running[0]!.end()
    await turn()
    expect(context.indexes).toEqual([7, 8, 9])
    for (const { end } of context.running) end()
    expect(await sampled).toEqual([7, 8, 9])
  }
})

test('a first one that fails keeps the others from nothing', async () => {
  const context = new Context()
  prepareSampling(context)
  await context._ctx.decodeBatch()
  const sampled = Promise.allSettled([1, 2].map((index) => context._ctx.sampleToken(index)))
  context.running[0]!.fail()
  await turn()
  context.running[1]!.end()
  expect((await sampled).map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
})

test.each([
  [{}, 'decodeBatch'],
  [{ _ctx: { sampleToken: () => undefined } }, 'decodeBatch'],
  [{ _ctx: { decodeBatch: () => undefined } }, 'sampleToken'],
])('a runtime without the private functions is refused when it loads (%#)', (context, name) => {
  expect(() => prepareSampling(context)).toThrow(`node-llama-cpp has no private LlamaContext._ctx.${name}`)
})

test('the runtime that is installed calls both functions where they are replaced', () => {
  const folder = dirname(fileURLToPath(import.meta.resolve('node-llama-cpp')))
  const source = readFileSync(join(folder, 'evaluator/LlamaContext/LlamaContext.js'), 'utf8')
  expect(source).toContain('this._ctx.decodeBatch()')
  expect(source).toContain('._ctx.sampleToken(')
})

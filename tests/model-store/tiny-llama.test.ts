import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { getLlama, LlamaCompletion } from 'node-llama-cpp'
import type { Handler } from 'torchserve-ts'
import { runHandler, type RunOptions, type TestInput } from 'torchserve-ts/testing'
import TextCompletion from '../../handlers/gguf/handler.ts'

const modelDir = fileURLToPath(new URL('../../model-store/tiny-llama', import.meta.url))
const PROMPT = 'In the beginning'
const modelConfig = { handler: { context_size: 256, sequences: 2, threads: 1 } }

const model = new TextCompletion()
/** The model loads once for all tests. */
const loaded: Handler = { handle: (requests, context) => model.handle(requests, context) }

async function complete(request: TestInput, options: RunOptions = {}): Promise<CompletionResult> {
  const { responses } = await runHandler(loaded, [request], { ...options, modelDir, modelConfig })
  const { items, streamed, error, contentType } = responses[0]!
  return { text: items.join(''), items, streamed, error, contentType }
}

interface CompletionResult {
  text: string
  items: string[]
  streamed: boolean
  error: unknown
  contentType: string | undefined
}

beforeAll(async () => {
  const first: Handler = { ...loaded, initialize: (context) => model.initialize(context) }
  const { logs } = await runHandler(first, [{ prompt: PROMPT, max_tokens: 1 }], { modelDir, modelConfig })
  expect(logs.map((log) => log.message).join('\n')).toMatch(
    /Loaded \S+\.gguf in \d+ ms: context of 256 tokens/,
  )
})

afterAll(async () => {
  await model.shutdown()
})

describe('tiny-llama', () => {
  test('streams token by token', async () => {
    const { items, streamed, error, contentType } = await complete({
      prompt: PROMPT,
      max_tokens: 50,
      temperature: 0,
    })
    expect(error).toBeUndefined()
    expect(streamed).toBe(true)
    expect(contentType).toBe('text/plain; charset=utf-8')
    expect(items).toHaveLength(50)
    expect(items.every((item) => item.length > 0)).toBe(true)
  })

  test('at temperature 0 says exactly what the library says', async () => {
    const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true })
    const direct = await llama.loadModel({ modelPath: join(modelDir, 'model.gguf') })
    const context = await direct.createContext({ contextSize: 256, threads: 1 })
    const completion = new LlamaCompletion({ contextSequence: context.getSequence() })
    const expected = await completion.generateCompletion(PROMPT, { maxTokens: 200, temperature: 0 })
    await llama.dispose()
    const { text } = await complete({ prompt: PROMPT, max_tokens: 200, temperature: 0 })
    expect(text).toBe(expected)
  })

  test('gives the same text for the same seed, another one for another seed', async () => {
    const wanted = { prompt: PROMPT, max_tokens: 30, temperature: 0.8 }
    const texts = []
    for (const seed of [1, 2, 1]) texts.push((await complete({ ...wanted, seed })).text)
    expect(texts[0]).toBe(texts[2])
    expect(texts[0]).not.toBe(texts[1])
  })

  test('gives the same text as one answer when it is asked not to stream', async () => {
    const wanted = { prompt: PROMPT, max_tokens: 20, temperature: 0 }
    const whole = await complete({ ...wanted, stream: false })
    expect(whole.streamed).toBe(false)
    expect(whole.text).toBe((await complete(wanted)).text)
  })

  test('ends before a stop text and streams no part of it', async () => {
    const wanted = { prompt: PROMPT, max_tokens: 40, temperature: 0 }
    const { text } = await complete(wanted)
    for (const [from, to] of [
      [10, 13],
      [17, 24],
      [30, 31],
    ] as const) {
      const stop = text.slice(from, to)
      const stopped = await complete({ ...wanted, stop: ['never in this text', stop] })
      expect(stopped.text).toBe(text.slice(0, text.indexOf(stop)))
    }
  })

  test('takes plain text as prompt', async () => {
    expect((await complete(PROMPT)).items.length).toBeGreaterThan(20)
  })

  test('takes a prompt with characters that it never saw', async () => {
    const { items, error } = await complete({
      prompt: 'Ünïcödé 漢字 🎉🎊',
      max_tokens: 200,
      temperature: 2,
      seed: 3,
    })
    expect(error).toBeUndefined()
    expect(items.length).toBeGreaterThan(0)
  })

  test('ends where the context ends', async () => {
    const { items, error } = await complete({
      prompt: PROMPT,
      max_tokens: 1_000_000,
      temperature: 0.8,
      seed: 1,
    })
    expect(error).toBeUndefined()
    expect(items.length).toBeGreaterThan(200)
    expect(items.length).toBeLessThan(256)
  })

  test('refuses a prompt that does not fit, before it computes anything', async () => {
    for (const times of [300, 1_000_000]) {
      const { error, items } = await complete({ prompt: 'word '.repeat(times) })
      expect(error).toMatchObject({ code: 'HANDLER_REJECTED', status: 400 })
      expect(items).toEqual([])
    }
  })

  test('refuses bad parameters with status 400', async () => {
    const { error } = await complete({ prompt: PROMPT, temperature: 'hot' })
    expect(error).toMatchObject({
      code: 'HANDLER_REJECTED',
      status: 400,
      message: expect.stringContaining('temperature'),
    })
  })

  test('stops on cancel and gives its sequence back', async () => {
    for (let round = 0; round < 5; round += 1) {
      const controller = new AbortController()
      let seen = 0
      const { error } = await complete(
        { prompt: PROMPT, max_tokens: 240, temperature: 0.8 },
        {
          signal: controller.signal,
          onItem: () => {
            seen += 1
            if (seen === 3) controller.abort()
          },
        },
      )
      expect(error).toMatchObject({ code: 'CANCELLED' })
      expect(seen).toBeLessThanOrEqual(4)
    }
  })

  test('does not compute ahead of a reader that waits', async () => {
    const controller = new AbortController()
    let seen = 0
    const { error } = await complete(
      { prompt: PROMPT, max_tokens: 200, temperature: 0.8 },
      {
        window: 600,
        signal: controller.signal,
        onItem: async () => {
          seen += 1
          if (seen === 5) setTimeout(() => controller.abort(), 200)
          await new Promise(() => undefined)
        },
      },
    )
    expect(error).toMatchObject({ code: 'CANCELLED' })
    // The window takes about nine small items; the time was enough for far more.
    expect(seen).toBeLessThan(15)
  })

  test('serves more requests than it has sequences, each with its own text', async () => {
    const requests = Array.from({ length: 6 }, (_, seed) => ({
      prompt: PROMPT,
      max_tokens: 15,
      temperature: 1,
      seed,
    }))
    const { responses } = await runHandler(loaded, [...requests, { prompt: '' }], { modelDir, modelConfig })
    expect(responses.slice(0, 6).map((response) => response.items.length)).toEqual([15, 15, 15, 15, 15, 15])
    expect(new Set(responses.slice(0, 6).map((response) => response.body.toString())).size).toBe(6)
    expect(responses[6]!.error).toMatchObject({ code: 'HANDLER_REJECTED', status: 400 })
  })
})

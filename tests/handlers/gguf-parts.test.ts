import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { readCompletion } from '../../handlers/gguf/parameters.ts'
import { readSettings } from '../../handlers/gguf/settings.ts'
import { type Turn, Turns } from '../../handlers/gguf/turns.ts'

const DEFAULTS = { maxTokens: 9, temperature: 0.8, topP: 1 }

describe('tiny-llama: parameters', () => {
  const full = {
    prompt: 'Hi',
    max_tokens: 7,
    temperature: 0,
    top_p: 0.5,
    seed: 3,
    stop: ['\n'],
    parse_special: false,
    stream: false,
  }
  const read = {
    prompt: 'Hi',
    maxTokens: 7,
    temperature: 0,
    topP: 0.5,
    seed: 3,
    stop: ['\n'],
    parseSpecial: false,
    stream: false,
  }

  test('are the same from JSON, JSON bytes, JSON text, a part `data` and parts by name', () => {
    const json = JSON.stringify(full)
    expect(readCompletion({ body: full }, DEFAULTS)).toEqual(read)
    expect(readCompletion({ body: Buffer.from(json) }, DEFAULTS)).toEqual(read)
    expect(readCompletion({ body: json }, DEFAULTS)).toEqual(read)
    expect(readCompletion({ data: Buffer.from(json) }, DEFAULTS)).toEqual(read)
    const parts = Object.entries(full).map(([name, value]) => {
      const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
      return [name, Buffer.from(text)] as const
    })
    expect(readCompletion(Object.fromEntries(parts), DEFAULTS)).toEqual(read)
  })

  test('may be a plain text: the prompt', () => {
    expect(readCompletion({ body: 'Once upon' }, DEFAULTS)).toMatchObject({
      prompt: 'Once upon',
      maxTokens: 9,
      topP: 1,
    })
    expect(readCompletion({ data: Buffer.from('Once') }, DEFAULTS)).toMatchObject({
      prompt: 'Once',
      stream: true,
    })
  })

  test('without a seed get another one each time', () => {
    const seeds = new Set(Array.from({ length: 20 }, () => readCompletion({ body: 'x' }, DEFAULTS).seed))
    expect(seeds.size).toBeGreaterThan(15)
  })

  test('take one stop text as well as a list', () => {
    expect(readCompletion({ body: { prompt: 'x', stop: 'end' } }, DEFAULTS).stop).toEqual(['end'])
    expect(readCompletion({ prompt: 'x', stop: Buffer.from('["a","b"]') }, DEFAULTS).stop).toEqual(['a', 'b'])
    expect(readCompletion({ prompt: 'x', stop: Buffer.from('["a') }, DEFAULTS).stop).toEqual(['["a'])
  })

  test.each([
    [{}, 'prompt must be'],
    [{ prompt: '' }, 'prompt must be'],
    [{ prompt: 7 }, 'prompt must be'],
    [{ prompt: 'x', max_tokens: 0 }, 'max_tokens must be'],
    [{ prompt: 'x', max_tokens: 1.5 }, 'max_tokens must be'],
    [{ prompt: 'x', max_tokens: 'all' }, 'max_tokens must be'],
    [{ prompt: 'x', temperature: -0.1 }, 'temperature must be'],
    [{ prompt: 'x', temperature: 2.1 }, 'temperature must be'],
    [{ prompt: 'x', temperature: NaN }, 'temperature must be'],
    [{ prompt: 'x', top_p: 0 }, 'top_p must be'],
    [{ prompt: 'x', top_p: 1.1 }, 'top_p must be'],
    [{ prompt: 'x', seed: -1 }, 'seed must be'],
    [{ prompt: 'x', seed: 2 ** 32 }, 'seed must be'],
    [{ prompt: 'x', stop: [''] }, 'stop must be'],
    [{ prompt: 'x', stop: [1] }, 'stop must be'],
    [{ prompt: 'x', stop: Array.from({ length: 17 }, () => 'a') }, 'stop must be'],
    [{ prompt: 'x', stream: 1 }, 'stream must be'],
    [{ prompt: 'x', max_token: 5 }, 'Parameter max_token is not supported'],
    ['{"prompt": ', 'must be valid JSON'],
    [['x'], 'must be a JSON object'],
    [Buffer.from([0xff, 0xfe]), 'must be UTF-8'],
  ])('that are bad are refused with status 400: %j', (body, message) => {
    const bad = (): unknown => readCompletion({ body }, DEFAULTS)
    expect(bad).toThrow(message)
    expect(bad).toThrow(expect.objectContaining({ name: 'PredictionException', code: 400 }))
  })

  test('say what to do about JSON that was sent as a form', () => {
    expect(() => readCompletion({ '{"prompt":"x"}': Buffer.alloc(0) }, DEFAULTS)).toThrow(
      'content-type: application/json',
    )
  })
})

describe('tiny-llama: settings', () => {
  let modelDir: string
  beforeEach(() => {
    modelDir = mkdtempSync(join(tmpdir(), 'tiny-llama-'))
  })
  afterEach(() => {
    rmSync(modelDir, { recursive: true })
  })
  const settings = (
    handler: Record<string, unknown>,
    model: Record<string, unknown> = {},
  ): ReturnType<typeof readSettings> =>
    readSettings({
      manifest: { model },
      modelConfig: { handler },
      properties: { modelDir } as Parameters<typeof readSettings>[0]['properties'],
    })

  test('take the serialized file, else model_path, else the only GGUF', () => {
    writeFileSync(join(modelDir, 'only.gguf'), '')
    expect(settings({}).modelPath).toBe(join(modelDir, 'only.gguf'))
    expect(settings({ model_path: 'other.gguf' }).modelPath).toBe(join(modelDir, 'other.gguf'))
    const serialized = settings({ model_path: 'other.gguf' }, { serializedFile: 'packed.gguf' })
    expect(serialized.modelPath).toBe(join(modelDir, 'packed.gguf'))
    expect(settings({ model_path: '/data/any.gguf' }).modelPath).toBe('/data/any.gguf')
  })

  test('say so when there is none, or no single one', () => {
    expect(() => settings({})).toThrow('The model must have one .gguf file, found none')
    writeFileSync(join(modelDir, 'a.gguf'), '')
    writeFileSync(join(modelDir, 'b.gguf'), '')
    expect(() => settings({})).toThrow('must have one .gguf file, found 2')
  })

  test.each([
    [{ threads: 0 }, 'handler.threads'],
    [{ sequences: 1.5 }, 'handler.sequences'],
    [{ context_size: '512' }, 'handler.context_size'],
    [{ gpu: true }, 'handler.gpu'],
  ])('that are wrong are named: %j', (handler, key) => {
    expect(() => settings({ model_path: 'x', ...handler })).toThrow(key)
  })
})

describe('tiny-llama: the settings of Seldon’s local runtime', () => {
  const read = (extra: object, handler: object = {}, uri = '/models/m') =>
    readSettings({
      manifest: {},
      modelConfig: { handler, modelSettings: { parameters: { uri, extra } } },
      properties: { modelDir: '/nowhere' } as Parameters<typeof readSettings>[0]['properties'],
    })
  const model = 'a.gguf'

  test('have our meaning; what is ours wins, and what has none is told', () => {
    const model_settings = {
      model,
      device: 'cpu',
      dtype: 'float16',
      max_model_len: 512,
      max_num_seqs: 2,
      default_generate_kwargs: { max_tokens: 9, temperature: 0.5, repetition_penalty: 1.1 },
    }
    const config = { model_type: 'chat.completions', model_settings }
    const settings = read({ backend: 'vllm', config }, { sequences: 3 })
    expect(settings).toMatchObject({
      modelPath: '/models/m/a.gguf',
      contextSize: 512,
      sequences: 3,
      gpu: false,
      sampling: { maxTokens: 9, temperature: 0.5, repeatPenalty: 1.1 },
    })
    expect(settings.warnings).toEqual([
      expect.stringContaining('backend vllm is replaced by node-llama-cpp'),
      expect.stringContaining('dtype has no effect here'),
    ])
  })

  test('are told of keys that nobody knows, wherever they stand', () => {
    const config = { model_type: 'completions', model_setings: {}, model_settings: { model }, empty: null }
    expect(read({ config, cofig: {} }).warnings).toEqual([
      expect.stringContaining(': cofig has no effect here'),
      expect.stringContaining(': config.model_setings has no effect here'),
    ])
  })

  test('may name the file by the URI', () => {
    expect(read({}, {}, '/models/b.gguf').modelPath).toBe('/models/b.gguf')
  })

  test.each([
    [{ backend: 'tensorflow' }, 'backend must be one of vllm'],
    [{ config: { model_type: 'images.generations' } }, 'model_type must be one of'],
    [{ config: { model_settings: { model: 'meta-llama/Llama' } } }, 'must name a .gguf file'],
    [{ config: { model_settings: { model, tensor_parallel_size: 2 } } }, 'tensor_parallel_size must be 1'],
    [{ config: { model_settings: { model, device: 'tpu' } } }, 'device must be one of cpu, cuda, auto'],
    [{ config: { model_settings: { model, max_model_len: 0 } } }, 'context_size'],
    [{ prompt_utils: {} }, 'prompt_utils is not supported'],
  ])('that cannot be followed are refused: %j', (extra, message) => {
    expect(() => read(extra)).toThrow(message)
  })
})

describe('tiny-llama: turns', () => {
  const request = (): AbortSignal => new AbortController().signal

  test('are given in order of asking', async () => {
    const turns = new Turns(1)
    const first = await turns.take(request())
    const order: number[] = []
    const waiting = [1, 2].map(async (k) => {
      const turn = await turns.take(request())
      order.push(k)
      return turn
    })
    turns.giveBack(first)
    turns.giveBack(await waiting[0]!)
    await waiting[1]
    expect(order).toEqual([1, 2])
  })

  test('pass over who has left', async () => {
    const turns = new Turns(1)
    const first = await turns.take(request())
    const leaving = new AbortController()
    const left = turns.take(leaving.signal)
    const next = turns.take(request())
    leaving.abort(new Error('gone'))
    await expect(left).rejects.toThrow('gone')
    turns.giveBack(first)
    turns.giveBack(await next)
    await turns.take(request())
    await expect(turns.take(leaving.signal)).rejects.toThrow('gone')
  })

  test('are shared by requests: who has two more than another gives one back', async () => {
    const turns = new Turns(4)
    const [many, few] = [request(), request()]
    const taken: Turn[] = []
    const take = (owner: AbortSignal): void => void turns.take(owner).then((turn) => taken.push(turn))
    for (let k = 0; k < 24; k += 1) take(many)
    await Promise.resolve()
    expect(taken.map(({ isWanted }) => isWanted)).toEqual([false, false, false, false])
    for (let k = 0; k < 24; k += 1) take(few)
    const counts: number[][] = []
    for (;;) {
      const wanted = taken.findIndex(({ isWanted }) => isWanted)
      if (wanted === -1) break
      const [turn] = taken.splice(wanted, 1)
      take(turn!.owner) // its choice goes on later
      turns.giveBack(turn!)
      await new Promise(setImmediate)
      counts.push([many, few].map((owner) => taken.filter((each) => each.owner === owner).length))
    }
    expect(counts).toEqual([
      [3, 1],
      [2, 2],
    ])
  })
})

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { events } from '../support/events.ts'
import { withFloats } from '../support/gguf.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** What fields of a request do with a GGUF model, token by token. */

const MODEL = 'tiny-llama'
/** The same with weights that are floats. */
const FLOATS = 'tiny-floats'
const MESSAGES = [{ role: 'user', content: 'Who made the earth?' }]
/** Tokens of tiny-llama. */
const END = 1
const THAT = 300
const HALF = { token: 129, byte: 0xc3 }

interface Token {
  token: string
  logprob: number
  bytes: number[]
}
interface Completion {
  choices: {
    text: string
    message: { content: string }
    finish_reason: string
    logprobs: {
      content: (Token & { top_logprobs: Token[] })[]
      tokens: string[]
      token_logprobs: (number | null)[]
      top_logprobs: (Record<string, number> | null)[]
      text_offset: number[]
    }
  }[]
  usage: { prompt_tokens: number; completion_tokens: number }
}

let server: Server

beforeAll(async () => {
  const folder = join(REPOSITORY, 'model-store', MODEL)
  const floats = tempDir()
  writeFileSync(join(floats, 'model.gguf'), withFloats(readFileSync(join(folder, 'model.gguf'))))
  server = await startServer({ models: [folder, `${FLOATS}=${floats}`] })
  for (const model of [MODEL, FLOATS]) await server.ready(model)
})

const post = (path: string, body: object): Promise<Response> =>
  fetch(`http://127.0.0.1:${server.ports.inference}${path}`, {
    method: 'POST',
    body: JSON.stringify({ model: MODEL, ...body }),
  })

async function complete(body: object): Promise<Completion> {
  const answer = await (await post('/v1/completions', { prompt: 'In the beginning', ...body })).json()
  expect(answer).not.toHaveProperty('error')
  return answer as Completion
}

const chat = async (body: object): Promise<Completion> =>
  (await (await post('/v1/chat/completions', { messages: MESSAGES, ...body })).json()) as Completion

describe('sampling', () => {
  const texts = async (...fields: object[]): Promise<string[]> => {
    const sure = { max_tokens: 24, seed: 5 }
    const answers = await Promise.all(fields.map((each) => complete({ ...sure, ...each })))
    return answers.map(({ choices }) => choices[0]!.text)
  }

  test('takes only the most likely token with top_k 1 and with min_p 1, at any temperature', async () => {
    const [greedy, one, likely, free] = await texts(
      { temperature: 0 },
      { temperature: 2, top_k: 1 },
      { temperature: 2, min_p: 1 },
      { temperature: 2, top_k: -1 },
    )
    expect([one, likely]).toEqual([greedy, greedy])
    expect(free).not.toBe(greedy)
  })

  test('avoids what was said with a penalty, by llama.cpp’s name and by vLLM’s', async () => {
    const [plain, ours, theirs] = await texts(
      { temperature: 0, max_tokens: 60 },
      { temperature: 0, max_tokens: 60, repeat_penalty: 1.8 },
      { temperature: 0, max_tokens: 60, repetition_penalty: 1.8 },
    )
    expect(ours).toBe(theirs)
    expect(ours).not.toBe(plain)
  })

  test('ends a text neither before min_tokens nor with ignore_eos', async () => {
    const ending = { temperature: 0, max_tokens: 12, logit_bias: { [END]: 90 } }
    const ends = await Promise.all([
      complete(ending),
      complete({ ...ending, min_tokens: 5 }),
      complete({ ...ending, ignore_eos: true }),
    ])
    expect(ends.map(({ usage, choices }) => [usage.completion_tokens, choices[0]!.finish_reason])).toEqual([
      [0, 'stop'],
      [5, 'stop'],
      [12, 'length'],
    ])
  })

  test('is the same for parameters of tensors', async () => {
    const inputs = [{ name: 'prompt', shape: [1], datatype: 'BYTES', data: ['In the beginning'] }]
    const parameters = { temperature: 2, top_k: 1, max_tokens: 24 }
    const response = await post(`/v2/models/${MODEL}/infer`, { inputs, parameters })
    const { outputs } = (await response.json()) as { outputs: { name: string; data: string[] }[] }
    const [greedy] = await texts({ temperature: 0 })
    expect(outputs.find(({ data }) => data[0] === greedy)).toBeDefined()
  })
})

describe('a field', () => {
  test.each([
    { grammar: 'root ::= "a"' },
    { guided_json: { type: 'object' } },
    { guided_choice: ['yes', 'no'] },
    { guided_regex: 'a' },
    { structured_outputs: { choice: ['yes'] } },
    { chat_template_kwargs: { enable_thinking: false } },
    { continue_final_message: true },
    { add_generation_prompt: false },
    { functions: [{ name: 'f' }] },
    { stop_token_ids: [1] },
    { skip_special_tokens: false },
    { best_of: 2 },
    { logits_processors: ['x'] },
    { anything: 0 },
    { top_k: 1.5 },
    { min_p: 2 },
    { repetition_penalty: 0 },
    { ignore_eos: 1 },
    { min_tokens: 9, max_tokens: 8 },
    { min_tokens: 1, response_format: { type: 'json_object' } },
    { ignore_eos: true, response_format: { type: 'json_object' } },
  ])('that cannot be held is refused by name: %j', async (fields) => {
    const [param] = Object.keys(fields)
    const response = await post('/v1/chat/completions', { messages: MESSAGES, max_tokens: 8, ...fields })
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param, message: expect.stringContaining(param!) } },
    ])
  })

  test('is refused by completions and embeddings, too', async () => {
    for (const [path, body] of [
      ['/v1/completions', { prompt: 'a', suffix: 'b' }],
      ['/v1/completions', { prompt: 'a', length_penalty: 1e20 }],
      ['/v1/completions', { prompt: 'a', messages: MESSAGES }],
      ['/v1/embeddings', { input: 'a', normalize: false }],
    ] as const) {
      const param = Object.keys(body)[1]
      const response = await post(path, body)
      expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }])
    }
  })

  test('that changes nothing is accepted', async () => {
    const idle = {
      ...{ user: 'u', store: false, metadata: { a: 'b' }, service_tier: 'auto', cache_prompt: true },
      ...{
        functions: [],
        chat_template_kwargs: {},
        add_generation_prompt: true,
        continue_final_message: false,
      },
      ...{ guided_json: null, skip_special_tokens: true, best_of: 2, n: 2, echo: false },
    }
    const { choices } = await chat({ ...idle, max_tokens: 2 })
    expect(choices).toHaveLength(2)
  })
})

describe('log probabilities', () => {
  test('are those of the logits, whatever the temperature, the penalties and the biases', async () => {
    const settings = [0, 0.2, 1, 2].map((temperature) => ({ temperature }))
    const first = await Promise.all(
      [...settings, { temperature: 1, top_p: 0.1, top_k: 3, presence_penalty: 2 }].map(async (fields) => {
        const logit_bias = { [THAT]: 100 }
        const { choices } = await complete({ ...fields, logit_bias, max_tokens: 2, logprobs: 2 })
        const { tokens, token_logprobs: own, top_logprobs: top } = choices[0]!.logprobs
        expect(tokens).toEqual([' that', ' that'])
        expect(Object.keys(top[0]!)).toHaveLength(3)
        return [own, top]
      }),
    )
    for (const each of first) expect(each).toEqual(first[0])
    const free = await complete({ temperature: 0, max_tokens: 1, logprobs: 5 })
    const [best] = Object.values(free.choices[0]!.logprobs.top_logprobs[0]!)
    expect(free.choices[0]!.logprobs.token_logprobs).toEqual([best])
    expect(Object.values(first[0]![1]![0] as Record<string, number>)[0]).toBe(best)
  })

  test('are the same under a grammar', async () => {
    const format = { response_format: { type: 'json_object' } }
    const body = { max_tokens: 1, temperature: 1, logprobs: true, top_logprobs: 1 }
    const [free, held] = await Promise.all([chat(body), chat({ ...body, ...format })])
    const [{ top_logprobs: likely }, { token, logprob }] = [free, held].map(
      ({ choices }) => choices[0]!.logprobs.content[0]!,
    ) as [Token & { top_logprobs: Token[] }, Token]
    expect(token).toBe('{')
    expect(logprob).toBeLessThan(likely[0]!.logprob)
  })

  test('have the true bytes of half a character', async () => {
    const half = { max_tokens: 1, temperature: 0, logit_bias: { [HALF.token]: 100 } }
    const { choices } = await chat({ ...half, logprobs: true })
    expect(choices[0]!.logprobs.content).toMatchObject([{ token: String.raw`\xc3`, bytes: [HALF.byte] }])
    const legacy = await complete({ ...half, logprobs: 0 })
    expect(legacy.choices[0]!.logprobs.tokens).toEqual([String.raw`bytes:\xc3`])
    const whole = await chat({ max_tokens: 1, temperature: 0, logprobs: true, logit_bias: { [THAT]: 100 } })
    expect(whole.choices[0]!.logprobs.content).toMatchObject([
      { token: ' that', bytes: [...Buffer.from(' that')] },
    ])
  })
})

describe('the log probabilities of a prompt', () => {
  /**
   * The log probabilities of continuations, as lm-eval's local-completions takes them, and whether each of
   * their tokens is the most likely one. The numbers are those of transformers 4.57.1, which computes with
   * floats: `AutoModelForCausalLM.from_pretrained('model-store/tiny-llama', gguf_file='model.gguf',
   * dtype=torch.float32)`, then `torch.log_softmax(model(ids).logits[0], -1)`.
   */
  const TASK: [context: number[], continuation: number[], logprobs: number[], greedy: boolean][] = [
    [[1145, 260, 1936, 1288, 396, 281, 565, 284, 260], [762], [-5.7009], false],
    [[1145, 260, 1936, 1288, 396, 281, 565, 284, 260], [909], [-6.0329], false],
    [
      [1145, 260, 1936, 1288, 396, 281, 565, 284, 260],
      [918, 269, 260, 407, 886],
      [-6.5717, -3.2021, -0.258, -4.7202, -1.2782],
      false,
    ],
    [[297, 260, 337, 805, 319], [674, 13, 539, 13], [-0.1328, -0.3081, -0.1653, -0.0094], true],
    [[297, 260, 337, 805, 319], [260, 1946, 84], [-4.55, -9.6546, -2.8949], false],
    [[297, 260, 337, 805, 319], [222, 129, 104], [-11.6104, -12.8687, -17.4332], false],
    [[955, 503, 347], [420, 1531], [-5.1832, -2.215], false],
    [[955, 503, 347], [1683, 365, 527], [-4.5355, -2.2027, -4.5449], false],
  ]

  test.each([0, 1])('are those of transformers, with max_tokens %i', async (max_tokens) => {
    const prompt = TASK.map(([context, continuation]) => [...context, ...continuation])
    const asked = { model: FLOATS, prompt, max_tokens, echo: true, logprobs: 1, temperature: 0, seed: 1 }
    const { choices, usage } = await complete(asked)
    expect(usage).toMatchObject({ prompt_tokens: prompt.flat().length, completion_tokens: 8 * max_tokens })
    for (const [i, [context, continuation, expected, greedy]] of TASK.entries()) {
      const { token_logprobs: own, top_logprobs: top, tokens } = choices[i]!.logprobs
      expect(tokens).toHaveLength(prompt[i]!.length + max_tokens)
      expect([own[0], top[0]]).toEqual([null, null])
      const end = context.length + continuation.length
      const scored = own.slice(context.length, end) as number[]
      expect(scored).toHaveLength(expected.length)
      for (const [k, each] of scored.entries()) expect(Math.abs(each - expected[k]!)).toBeLessThan(0.01)
      const best = top.slice(context.length, end).map((each) => Math.max(...Object.values(each!)))
      expect(scored.every((each, k) => each === best[k])).toBe(greedy)
    }
  })

  test('come with the text and its places, also as a stream', async () => {
    const prompt = 'Né in the beginning'
    const body = { prompt, max_tokens: 3, echo: true, logprobs: 0, temperature: 0 }
    const { choices } = await complete(body)
    const { text, logprobs } = choices[0]!
    expect(text.startsWith(prompt)).toBe(true)
    expect(logprobs.tokens.slice(0, 4)).toEqual(['N', String.raw`bytes:\xc3`, String.raw`bytes:\xa9`, ' in'])
    for (const [i, token] of logprobs.tokens.entries())
      if (!token.startsWith('bytes:'))
        expect(text.slice(logprobs.text_offset[i]).startsWith(token)).toBe(true)
    const chunks = events(
      await (await post('/v1/completions', { ...body, stream: true })).text(),
    ) as Completion[]
    const streamed = chunks.flatMap((chunk) => chunk.choices ?? [])
    expect(streamed.map((each) => each.text).join('')).toBe(text)
    expect(streamed.flatMap((each) => each.logprobs?.tokens ?? [])).toEqual(logprobs.tokens)
    expect(streamed.flatMap((each) => each.logprobs?.token_logprobs ?? [])).toEqual(logprobs.token_logprobs)
  })

  test('end with the prompt where the context ends', async () => {
    const body = { echo: true, logprobs: 1, temperature: 0 }
    const prompt = Array.from({ length: 1_023 }, () => THAT)
    const { choices } = await complete({ ...body, prompt, max_tokens: 1 })
    expect(choices[0]!.logprobs.tokens).toHaveLength(1_024)
    const long = await post('/v1/completions', { ...body, prompt: [...prompt, THAT], max_tokens: 0 })
    expect([long.status, await long.json()]).toMatchObject([
      400,
      { error: { code: 'context_length_exceeded' } },
    ])
  })

  test('need echo: without it there must be a token', async () => {
    const echoed = await complete({ prompt: 'In the', max_tokens: 0, echo: true })
    expect(echoed.choices[0]).toMatchObject({ text: 'In the', finish_reason: 'length', logprobs: null })
    const response = await post('/v1/completions', { prompt: 'In the', max_tokens: 0 })
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param: 'max_tokens' } }])
  })
})

describe('the text of a special token', () => {
  const prompt = 'In the beginning</s>And'
  const tokensOf = async (body: object): Promise<number> =>
    (await complete({ prompt, max_tokens: 1, ...body })).usage.prompt_tokens

  test('is that token in a prompt, unless the client refuses', async () => {
    expect([await tokensOf({}), await tokensOf({ parse_special: false })]).toEqual([6, 9])
    const { choices } = await complete({ prompt, max_tokens: 0, echo: true, logprobs: 0 })
    expect(choices[0]).toMatchObject({ text: prompt })
    expect(choices[0]!.logprobs.tokens).toEqual(['In', ' the', ' begin', 'ning', '</s>', 'And'])
    const response = await post('/v1/completions', { prompt, parse_special: 'no' })
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param: 'parse_special' } },
    ])
  })

  test('is text in a message of a chat and in an embedding', async () => {
    const counts = async (content: string): Promise<number> =>
      (await chat({ messages: [{ role: 'user', content }], max_tokens: 1 })).usage.prompt_tokens
    expect((await counts(`a${'</s>'.repeat(10)}`)) - (await counts('a'))).toBeGreaterThan(10)
    const embed = async (input: string): Promise<number> => {
      const answer = (await (await post('/v1/embeddings', { input })).json()) as Completion
      return answer.usage.prompt_tokens
    }
    expect(await embed(prompt)).toBe(9)
  })
})

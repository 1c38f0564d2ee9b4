import { toUSVString } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { ChatStream, CompletionStream } from '../../common/openai/chunks.ts'
import { Collector } from '../../common/openai/collect.ts'
import { defaultChatPrompt } from '../../common/openai/default-chat.ts'
import { type ChatChunk, type ChatDelta, embeddingsAnswer } from '../../common/openai/types.ts'
import { StopFilter } from '../../common/openai/stop-filter.ts'

const HEAD = { id: 'chatcmpl-1', created: 7, model: 'm', includeUsage: false }
const USAGE = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }

/** A text cut into pieces at random. */
const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '\n', 'ü'), maxLength: 4 }), {
  maxLength: 12,
})

describe('a stop filter', () => {
  test.each([[['abb']], [['ab', 'b']], [['a', 'b', 'b']]])(
    'ends at the stop that is complete first, and not at one that began before it: %j',
    (parts) => {
      const filter = new StopFilter(['abb', 'b'])
      expect(parts.map((part) => filter.push(part)).join('')).toBe('a')
      expect(filter.stopped).toBe(true)
    },
  )

  /** Where the first complete stop text begins; computed character by character. */
  function firstStop(whole: string, stops: readonly string[]): number {
    for (let end = 1; end <= whole.length; end += 1) {
      const lengths = stops.filter((stop) => whole.slice(0, end).endsWith(stop)).map(({ length }) => length)
      if (lengths.length > 0) return end - Math.max(...lengths)
    }
    return Infinity
  }

  test.each([
    ['aab', 'aaab', 'a'],
    ['aab', 'xaaaab', 'xaa'],
    ['abab', 'xabaabab', 'xaba'],
    ['aabaab', 'aabaaabaab', 'aaba'],
  ])('of what differs, the stop %j may have begun before: %j', (stop, text, seen) => {
    const filter = new StopFilter([stop])
    expect(
      Array.from(text)
        .map((piece) => filter.push(piece))
        .join('') + filter.flush(),
    ).toBe(seen)
    expect(filter.stopped).toBe(true)
  })

  test('lets through exactly what stands before the stop that is complete first, however the text is cut', () => {
    const stops = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '\n'), minLength: 1, maxLength: 3 }), {
      maxLength: 3,
    })
    fc.assert(
      fc.property(pieces, stops, (parts, ends) => {
        const filter = new StopFilter(ends)
        const seen = parts.map((part) => filter.push(part)).join('') + filter.flush()
        const whole = parts.join('')
        const first = firstStop(whole, ends)
        expect(seen).toBe(whole.slice(0, Math.min(first, whole.length)))
        expect(filter.stopped).toBe(first < Infinity)
      }),
    )
  })
})

describe('a chat stream', () => {
  const sent = (chunks: ChatChunk[], head = HEAD): ChatChunk[] => {
    const stream = new ChatStream(head)
    return [...chunks.flatMap((chunk) => stream.next(chunk)), ...stream.end()]
  }

  test('says the role first, each choice’s finish once, and shares id, time and model', () => {
    const choices = fc.array(fc.record({ index: fc.nat(2), content: fc.string() }), { maxLength: 20 })
    fc.assert(
      fc.property(choices, (said) => {
        const chunks = sent(said.map(({ index, content }) => ({ choices: [{ index, delta: { content } }] })))
        for (const chunk of chunks) {
          expect(chunk).toMatchObject({
            id: 'chatcmpl-1',
            created: 7,
            model: 'm',
            object: 'chat.completion.chunk',
          })
          expect(JSON.stringify(chunk)).not.toContain('"usage"')
        }
        const firsts = [...new Set(chunks.flatMap(({ choices: some }) => some.map(({ index }) => index)))]
        expect(firsts).toEqual(firsts.map((_index, place) => place))
        for (const index of new Set(said.map((one) => one.index))) {
          const own = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index)
          expect(own[0]!.delta).toEqual({ role: 'assistant', content: '' })
          expect(own.filter((choice) => choice.delta.role !== undefined)).toHaveLength(1)
          expect(own.map((choice) => choice.finish_reason)).toEqual([...own.slice(1).map(() => null), 'stop'])
          const text = said.filter((one) => one.index === index).map((one) => one.content)
          expect(own.map((choice) => choice.delta.content ?? '').join('')).toBe(text.join(''))
        }
      }),
    )
  })

  test('tells the usage only if asked: null on the way, and at the end without choices', () => {
    const chunks: ChatChunk[] = [
      { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'length' }] },
      { choices: [], usage: USAGE },
    ]
    expect(sent(chunks).every((chunk) => chunk.choices.length > 0)).toBe(true)
    const asked = sent(chunks, { ...HEAD, includeUsage: true })
    expect(asked.at(-1)).toMatchObject({ choices: [], usage: USAGE })
    expect(asked.slice(0, -1).map((chunk) => chunk.usage)).toEqual([null, null])
    expect(asked[1]!.choices[0]!.finish_reason).toBe('length')
  })

  test('passes on chunks that are complete, with all that they hold', () => {
    const chunk = { id: 'up', created: 1, model: 'up-1', system_fingerprint: 'fp', choices: [] as never[] }
    const delta = { role: 'assistant', content: '', reasoning: 'x' }
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: null }]
    expect(sent([{ ...chunk, choices }])[0]).toMatchObject({ ...chunk, choices })
    const { id, created, model } = chunk
    const whole = sent(
      [
        { ...chunk, choices },
        { choices: [], usage: USAGE },
      ],
      { ...HEAD, includeUsage: true },
    )
    expect(whole).toHaveLength(3)
    for (const each of whole) expect(each).toMatchObject({ id, created, model })
  })

  test('sends nothing of a choice that has ended', () => {
    const finished = { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' as const }] }
    expect(sent([finished, finished])).toHaveLength(2)
  })
})

test('a legacy stream has texts and finishes', () => {
  const stream = new CompletionStream({ ...HEAD, id: 'cmpl-1' })
  expect(stream.next({ choices: [{ index: 0, text: 'a' }] })).toMatchObject([
    { object: 'text_completion', choices: [{ index: 0, text: 'a', finish_reason: null }] },
  ])
  expect(stream.end()).toMatchObject([{ choices: [{ index: 0, text: '', finish_reason: 'stop' }] }])
})

describe('any text cut between the halves of its characters', () => {
  const text = fc.string({ unit: fc.constantFrom('a', '\u{1f600}', '\ud83d', '\ude00'), maxLength: 12 })

  test('arrives in well-formed chunks of a chat that join to it, each choice and field by itself', () => {
    fc.assert(
      fc.property(text, text, fc.boolean(), (content, args, finishes) => {
        const stream = new ChatStream(HEAD)
        const chunks: ChatChunk[] = []
        for (let at = 0; at < Math.max(content.length, args.length); at += 1) {
          const call = { index: 3, function: { arguments: args.charAt(at) } }
          const delta = { content: content.charAt(at), reasoning: args.charAt(at) }
          const choices = [
            { index: 0, delta },
            { index: 1, delta: { tool_calls: [call] } },
          ]
          chunks.push(...stream.next({ choices }))
        }
        if (finishes)
          chunks.push(...stream.next({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }))
        chunks.push(...stream.end())
        expect(JSON.stringify(chunks)).not.toContain(String.raw`\ud`)
        const deltas = (index: number) =>
          chunks
            .flatMap(({ choices }) => choices.filter((each) => each.index === index))
            .map(({ delta }) => delta)
        const whole = toUSVString(args)
        expect(
          deltas(0)
            .map((delta) => delta.content ?? '')
            .join(''),
        ).toBe(toUSVString(content))
        expect(
          deltas(0)
            .map((delta) => (delta['reasoning'] as string | undefined) ?? '')
            .join(''),
        ).toBe(whole)
        const calls = deltas(1).flatMap((delta) => delta.tool_calls ?? [])
        expect(calls.map((call) => call.function!.arguments).join('')).toBe(whole)
        expect(new Set(calls.map(({ index }) => index)).size).toBeLessThan(2)
      }),
    )
  })

  test('arrives in well-formed chunks of a completion', () => {
    fc.assert(
      fc.property(text, (units) => {
        const stream = new CompletionStream(HEAD)
        const chunks = units.split('').flatMap((unit) => stream.next({ choices: [{ index: 0, text: unit }] }))
        chunks.push(...stream.end())
        const texts = chunks.map(({ choices }) => choices[0]!.text)
        expect(texts.every((each) => each === toUSVString(each))).toBe(true)
        expect(texts.join('')).toBe(toUSVString(units))
      }),
    )
  })
})

describe('a collector', () => {
  test('joins texts, tool calls, log probabilities and usage', () => {
    const collector = new Collector(HEAD)
    const call = (args: string, more = {}) => ({
      tool_calls: [{ index: 0, ...more, function: { arguments: args } }],
    })
    const logprobs = { content: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [] }] }
    collector.addChat({ choices: [{ index: 0, delta: { content: 'a' }, logprobs }] })
    collector.addChat({
      choices: [
        {
          index: 1,
          delta: {
            tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '' } }],
          },
        },
      ],
    })
    collector.addChat({ choices: [{ index: 1, delta: call('{"x"') }] })
    collector.addChat({ choices: [{ index: 1, delta: call(':1}'), finish_reason: 'tool_calls' }] })
    collector.addChat({ choices: [{ index: 0, delta: { content: 'b' }, logprobs, finish_reason: 'length' }] })
    collector.addChat({ choices: [], usage: USAGE })
    const { choices, usage, object } = collector.chat()
    expect(object).toBe('chat.completion')
    expect(usage).toEqual(USAGE)
    expect(choices[0]).toMatchObject({ message: { content: 'ab', refusal: null }, finish_reason: 'length' })
    expect((choices[0]!['logprobs'] as { content: unknown[] }).content).toHaveLength(2)
    const tool = { id: 'c', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }
    expect(choices[1]).toMatchObject({
      message: { content: null, tool_calls: [tool] },
      finish_reason: 'tool_calls',
    })
  })

  test('keeps fields of other names: texts, lists and objects joined, else the last', () => {
    const collector = new Collector(HEAD)
    const deltas: object[] = [
      { reasoning: 'a', details: [1], function_call: { name: 'f', arguments: '{' }, n: 1 },
      { reasoning: 'b', details: [2], function_call: { arguments: '}' }, n: 2 },
      { reasoning: null, constructor: 'x' },
    ]
    for (const delta of deltas) collector.addChat({ choices: [{ index: 0, delta: delta as ChatDelta }] })
    expect(collector.chat().choices[0]!['message']).toEqual({
      role: 'assistant',
      content: '',
      refusal: null,
      reasoning: 'ab',
      details: [1, 2],
      function_call: { name: 'f', arguments: '{}' },
      n: 2,
      constructor: 'x',
    })
  })

  test('refuses an index that would make a list without end', () => {
    for (const index of [-1, 0.5, 128, Number.MAX_SAFE_INTEGER]) {
      const add = (): void => new Collector(HEAD).addText({ choices: [{ index, text: '' }] })
      expect(add).toThrow(expect.objectContaining({ code: 'INVALID_OUTPUT' }))
    }
  })
})

test('embeddings survive base64 as 32-bit floats, and floats as they are', () => {
  fc.assert(
    fc.property(fc.array(fc.float({ noNaN: true }), { maxLength: 20 }), (vector) => {
      const answer = (format: 'float' | 'base64') =>
        (embeddingsAnswer({ embeddings: [vector] }, 'm', format)['data'] as { embedding: unknown }[])[0]!
          .embedding
      expect(answer('float')).toEqual(vector)
      const bytes = Buffer.from(answer('base64') as string, 'base64')
      expect(vector.map((_value, i) => bytes.readFloatLE(i * 4))).toEqual(vector)
    }),
  )
})

test('the default template names who speaks and ends where the model goes on', () => {
  const parts = [
    { type: 'text', text: 'a' },
    { type: 'image_url', image_url: {} },
    { type: 'text', text: 'b' },
  ]
  const messages = [
    { role: 'developer', content: 'Be kind' },
    { role: 'user', content: parts },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: '1', type: 'function' as const, function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', content: '7' },
  ]
  expect(defaultChatPrompt(messages)).toBe(
    'System: Be kind\nUser: a\nb\nAssistant: f({})\nTool: 7\nAssistant:',
  )
})

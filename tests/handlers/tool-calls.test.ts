import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { merge } from '../../handlers/gguf/chat.ts'
import { ChoiceReader } from '../../handlers/gguf/choice-reader.ts'

interface Seen {
  content: string
  calls: { name: string; arguments: string }[]
}

const TOOLS = ['f', 'get_weather']

/** What a client makes of an answer that comes in these parts. */
function read(
  parts: readonly string[],
  how: { cut?: boolean; forced?: boolean; thinks?: boolean; parallel?: boolean } = {},
): Seen {
  const tools = TOOLS.map((name) => ({ type: 'function' as const, function: { name } }))
  const use = { tools, forced: how.forced ?? false }
  const reader = new ChoiceReader(use, '', how.thinks ?? false, how.parallel)
  const seen: Seen = { content: '', calls: [] }
  const deltas = [...parts.map((part) => reader.push(part)), reader.end('', how.cut ?? false)].flat()
  for (const { content, tool_calls: pieces = [] } of deltas) {
    seen.content += content ?? ''
    for (const { index, function: piece } of pieces) {
      const call = (seen.calls[index] ??= { name: '', arguments: '' })
      call.name += piece?.name ?? ''
      call.arguments += piece?.arguments ?? ''
    }
  }
  expect(reader.called).toBe(seen.calls.length > 0)
  return seen
}

/** The text in pieces that end at these places. */
function cut(text: string, places: readonly number[]): string[] {
  const ends = [...places.map((place) => place % (text.length + 1)), text.length].sort((a, b) => a - b)
  return ends.map((end, i) => text.slice(ends[i - 1] ?? 0, end))
}

const CALL = '{"name": "f", "arguments": {"x": "}"}}'
const F = { name: 'f', arguments: '{"x": "}"}' }

describe('calls of tools', () => {
  test('only the first counts where the request wants no parallel calls', () => {
    expect(read([`${CALL}\n${CALL}`])).toEqual({ content: '', calls: [F, F] })
    expect(read([`${CALL}\n${CALL}`], { parallel: false })).toEqual({ content: '', calls: [F] })
  })

  test('come out whole, however the text is cut and whatever stands before and between them', () => {
    const call = fc.record({
      name: fc.constantFrom(...TOOLS),
      values: fc.dictionary(fc.string(), fc.jsonValue()),
    })
    const before = fc.constantFrom('', 'Let me check. ', '<think>{"name": "f"</think>', 'Take {x} or [', '[')
    const between = fc.constantFrom('', ' ', '</tool_call>\n<tool_call>', '}, ')
    fc.assert(
      fc.property(
        fc.array(call, { minLength: 1, maxLength: 3 }),
        before,
        between,
        fc.boolean(),
        fc.array(fc.nat()),
        (made, begin, gap, nameFirst, places) => {
          const wanted = made.map(({ name, values }) => ({ name, arguments: JSON.stringify(values) }))
          const texts = wanted.map(({ name, arguments: values }) =>
            nameFirst
              ? `{"name": "${name}", "arguments": ${values}}`
              : `{"parameters": ${values}, "name": "${name}"}`,
          )
          const { calls, content } = read(cut(begin + texts.join(gap), places))
          expect(calls).toEqual(wanted)
          expect(begin.startsWith(content)).toBe(true)
          expect(begin.slice(content.length)).toMatch(/^\[?$/)
        },
      ),
    )
  })

  test.each<[string, string, Seen]>([
    ['after a text', `Let me check.\n${CALL}`, { content: 'Let me check.\n', calls: [F] }],
    ['after a mark', `Yes <tool_call>\n${CALL}\n</tool_call>`, { content: 'Yes ', calls: [F] }],
    [
      'after thoughts',
      `<think>no {"a"</think>\n${CALL}`,
      { content: '<think>no {"a"</think>\n', calls: [F] },
    ],
    ['in a list', `[TOOL_CALLS] [${CALL}, ${CALL}]`, { content: '', calls: [F, F] }],
    [
      'with a mark, of a tool that nobody has',
      '<tool_call>{"name":"g"}',
      { content: '', calls: [{ name: 'g', arguments: '{}' }] },
    ],
    [
      'as OpenAI writes them',
      '{"type":"function","function":{"name":"f","arguments":"{\\"a\\":1}"}}',
      { content: '', calls: [{ name: 'f', arguments: '{"a":1}' }] },
    ],
  ])('are found %s', (_where, text, seen) => {
    expect(read([text])).toEqual(seen)
    expect(read(text.split(/(?=.)/s))).toEqual(seen)
  })

  test.each([
    'Hello',
    'a < b, {} and [1]',
    '{"a": {"b": [1]}}',
    'He is {"name": "Bob", "age": 3}.',
    '{"name": "g", "arguments": {}}',
    '{"name": 1, "arguments": {}}',
    'The mark <tool_call> begins a call',
    '<think>I could say {"name": "f", "arguments": {}}',
    'ends with <tool',
    'ends with {',
  ])('are not seen in %j', (text) => {
    expect(read([text])).toEqual({ content: text, calls: [] })
    expect(read(text.split(/(?=.)/s))).toEqual({ content: text, calls: [] })
  })

  test('are none in what a model thinks that begins with its prompt', () => {
    expect(read([CALL], { thinks: true })).toEqual({ content: CALL, calls: [] })
    expect(read([`I see.</think>${CALL}`], { thinks: true })).toEqual({
      content: 'I see.</think>',
      calls: [F],
    })
  })

  test('that are cut off are never content', () => {
    const texts = [CALL, `<tool_call>${CALL}`, '{"arguments": {"x": 1}, "name": "f"}']
    for (const text of texts)
      for (let length = 1; length < text.length - 1; length++) {
        const cut = `Yes. ${text.slice(0, length)}`
        expect([cut, read([cut], { cut: true }).content.trimEnd()]).toEqual([cut, 'Yes.'])
      }
    expect(read(['{"name": "f", "argu']).content).toBe('')
    expect(read(['{"name": "f", "arguments": {"x'], { forced: true, cut: true })).toEqual({
      content: '',
      calls: [{ name: 'f', arguments: '{"x' }],
    })
    expect(read(['{"na'], { forced: true, cut: true })).toEqual({ content: '', calls: [] })
  })
})

describe('merged generators', () => {
  async function* count(to: number, ended: () => void, fails = false): AsyncGenerator<number> {
    try {
      for (let i = 0; i < to; i++) {
        await Promise.resolve()
        yield i
      }
      if (fails) throw new Error('broken')
    } finally {
      ended()
    }
  }

  test('give all items', async () => {
    const items: number[] = []
    for await (const item of merge([count(3, () => undefined), count(2, () => undefined)])) items.push(item)
    expect(items.sort()).toEqual([0, 0, 1, 1, 2])
  })

  test('are all ended when one fails, and when nobody wants more', async () => {
    let ended = 0
    const end = (): void => {
      ended++
    }
    const all = async (): Promise<void> => {
      for await (const _item of merge([count(100, end), count(1, end, true)]));
    }
    await expect(all()).rejects.toThrow('broken')
    expect(ended).toBe(2)
    for await (const _item of merge([count(100, end), count(100, end)])) break
    expect(ended).toBe(4)
  })
})

import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { merge } from '../../handlers/gguf/merge.ts'
import { looksLikeCall, ToolCallReader } from '../../handlers/gguf/tool-calls.ts'

/** What a client makes of the deltas. */
function calls(parts: readonly string[]): { name: string; arguments: string }[] {
  const reader = new ToolCallReader()
  const made: { name: string; arguments: string }[] = []
  for (const part of parts) {
    for (const { index, function: piece } of reader.push(part)) {
      made[index] ??= { name: '', arguments: '' }
      made[index].name += piece?.name ?? ''
      made[index].arguments += piece?.arguments ?? ''
    }
  }
  return made
}

/** The text in pieces that end at these places. */
function cut(text: string, places: readonly number[]): string[] {
  const ends = [...places.map((place) => place % (text.length + 1)), text.length].sort((a, b) => a - b)
  return ends.map((end, i) => text.slice(ends[i - 1] ?? 0, end))
}

describe('calls of tools', () => {
  test('come out whole, however the text is cut and whatever stands between them', () => {
    const call = fc.record({
      name: fc.stringMatching(/^[a-z_]{1,8}$/),
      values: fc.dictionary(fc.string(), fc.jsonValue()),
    })
    const between = fc.constantFrom('', ' ', '</tool_call>\n<tool_call>', '}, ')
    fc.assert(
      fc.property(
        fc.array(call, { minLength: 1, maxLength: 3 }),
        between,
        fc.array(fc.nat()),
        (made, gap, places) => {
          const wanted = made.map(({ name, values }) => ({ name, arguments: JSON.stringify(values) }))
          const text = wanted.map((one) => `{"name": "${one.name}", "arguments": ${one.arguments}}`).join(gap)
          expect(calls(cut(text, places))).toEqual(wanted)
        },
      ),
    )
  })

  test('are known by how they begin', () => {
    for (const text of [' <tool_call>\n{', '{"name": "f"', '[TOOL_CALLS] ['])
      expect(looksLikeCall(text)).toBe(true)
    for (const text of ['', ' ', '{', '<tool']) expect(looksLikeCall(text)).toBeUndefined()
    for (const text of ['Hello', '{"a": 1}', '<b>']) expect(looksLikeCall(text)).toBe(false)
  })

  test('that are no calls give nothing', () => {
    expect(calls(['{"nam', 'e": 1, "arguments": {}}'])).toEqual([])
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

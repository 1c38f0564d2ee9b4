import { expect, test } from '@jest/globals'
import { parseYaml } from '../../model-archiver/yaml.ts'

test.each(['a: 1\nb: 2\na: 3\n', '{a: 1, a: 2}', 'x:\n  - {1: a, 1: b}\n', '"a": 1\na: 2\n'])(
  'a key that stands twice in a map is refused: %j',
  async (text) => {
    await expect(parseYaml(text)).rejects.toThrow('Map keys must be unique')
  },
)

test('equal keys of different maps, and of different types, are no mistake', async () => {
  expect(await parseYaml('a: {b: 1}\nb: {b: 2}\n')).toEqual({ a: { b: 1 }, b: { b: 2 } })
  expect(await parseYaml('1: a\n"1": b\n', { mapAsMap: true })).toEqual(
    new Map<unknown, string>([
      [1, 'a'],
      ['1', 'b'],
    ]),
  )
})

test('what is no YAML is refused with its place', async () => {
  await expect(parseYaml('a: [1\nb: 2\n')).rejects.toThrow(/at line \d/)
})

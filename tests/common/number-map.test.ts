import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { NumberMap } from '../../common/number-map.ts'

const entries = (map: Map<number, object>): object[] =>
  [...map].sort(([a], [b]) => a - b).map(([, value]) => value)

test('it says what a Map says, whatever comes and goes', () => {
  // Keys that share places, keys in a row, and the largest ones.
  const key = fc.oneof(
    fc.nat(40),
    fc.nat(8).map((n) => n * 64),
    fc.nat(8).map((n) => 2 ** 32 - 1 - n),
  )
  const step = fc.record({ key, remove: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const [map, model] = [new NumberMap<object>(), new Map<number, object>()]
      for (const [n, { key, remove }] of steps.entries()) {
        const value = { n }
        if (remove) {
          map.delete(key)
          model.delete(key)
        } else {
          map.set(key, value)
          model.set(key, value)
        }
        expect(map.size).toBe(model.size)
        expect(map.get(key)).toBe(model.get(key))
        expect(map.has(key)).toBe(model.has(key))
      }
      expect(map.values()).toEqual(entries(model))
      for (const each of [...model.keys()]) expect(map.get(each)).toBe(model.get(each))
      map.clear()
      expect([map.size, map.values()]).toEqual([0, []])
    }),
  )
})

test('a row that goes around the end stays whole when its first one leaves', () => {
  const map = new NumberMap<object>()
  const values = new Map([15, 31, 47, 0].map((key) => [key, { key }]))
  for (const [key, value] of values) map.set(key, value)
  map.delete(15)
  expect([31, 47, 0].map((key) => map.get(key))).toEqual([31, 47, 0].map((key) => values.get(key)))
})

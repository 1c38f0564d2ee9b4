import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { PassingMap, PassingSet } from '../../common/maps.ts'

const key = fc.integer({ min: 0, max: 20 })
const steps = fc.array(fc.record({ key, add: fc.boolean() }), { minLength: 3_000, maxLength: 4_000 })

test('holds what a Map holds, in its order, also after its entries have moved', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const map = new Map<number, string>()
      const passing = new PassingMap<number, string>()
      const set = new PassingSet<number>()
      for (const [at, { key, add }] of all.entries()) {
        if (add) {
          map.set(key, `${at}`)
          passing.set(key, `${at}`)
          set.add(key)
        } else {
          const had = map.delete(key)
          expect([passing.delete(key), set.delete(key)]).toEqual([had, had])
        }
        expect(passing.get(key)).toBe(map.get(key))
      }
      expect([...passing]).toEqual([...map])
      expect([...set]).toEqual([...map.keys()])
      expect([passing.size, set.size]).toEqual([map.size, map.size])
    }),
    { numRuns: 20 },
  )
})

import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { alwaysFor, nextByTurn, type Weighted } from '../../frontend/models/traffic.ts'

interface Item extends Weighted {
  weight: number
}

function items(...weights: number[]): Item[] {
  return weights.map((weight, index) => ({ version: `${index + 1}.0`, weight, due: 0 }))
}

/** How often each was chosen in that many turns. */
function turns(list: Item[], count: number): number[] {
  const counts = new Map(list.map((item) => [item, 0]))
  for (let turn = 0; turn < count; turn += 1) {
    const item = nextByTurn(list)!
    counts.set(item, counts.get(item)! + 1)
  }
  return [...counts.values()]
}

const weightsOf = fc
  .array(fc.integer({ min: 0, max: 1_000_000 }), { minLength: 1, maxLength: 6 })
  .filter((weights) => weights.some((weight) => weight > 0))
const value = fc.string({ minLength: 1, maxLength: 40 })

describe('by turn', () => {
  test('10 % are 1,000 of 10,000 requests, and one of every ten', () => {
    expect(turns(items(90, 10), 10_000)).toEqual([9_000, 1_000])
    const list = items(90, 10)
    for (let ten = 0; ten < 20; ten += 1) expect(turns(list, 10)).toEqual([9, 1])
  })

  test('property: after any number of requests, each version has its share to within its number of versions', () => {
    fc.assert(
      fc.property(weightsOf, fc.integer({ min: 1, max: 500 }), (weights, count) => {
        const total = weights.reduce((sum, weight) => sum + weight)
        turns(items(...weights), count).forEach((got, index) => {
          expect(Math.abs(got - (count * weights[index]!) / total)).toBeLessThan(weights.length)
          if (weights[index] === 0) expect(got).toBe(0)
        })
      }),
    )
  })

  test('property: in as many requests as the weights sum up to, each has exactly its weight', () => {
    const small = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(small, (weights) => {
        const total = weights.reduce((sum, weight) => sum + weight)
        expect(turns(items(...weights), total)).toEqual(weights)
      }),
    )
  })

  test('without any weight there is none', () => {
    expect(nextByTurn(items(0, 0))).toBeUndefined()
    expect(alwaysFor('ann', items(0, 0), 'm')).toBeUndefined()
  })
})

describe('by value', () => {
  const values = Array.from({ length: 10_000 }, (_, index) => `user-${index}`)
  const chosen = (list: Item[], salt = 'm'): string[] =>
    values.map((each) => alwaysFor(each, list, salt)!.version)
  const count = (versions: string[], wanted: string): number =>
    versions.filter((version) => version === wanted).length

  test('values share the versions by weight: 10 % to within 1 % over 10,000 of them', () => {
    expect(Math.abs(count(chosen(items(90, 10)), '2.0') - 1_000)).toBeLessThan(100)
    const versions = chosen(items(50, 30, 20))
    expect(Math.abs(count(versions, '1.0') - 5_000)).toBeLessThan(150)
    expect(Math.abs(count(versions, '3.0') - 2_000)).toBeLessThan(150)
  })

  test('property: a value stays while the weights stay, whatever the order of the versions', () => {
    fc.assert(
      fc.property(value, weightsOf, (text, weights) => {
        const list = items(...weights)
        const first = alwaysFor(text, list, 'm')!.version
        expect(alwaysFor(text, list, 'm')!.version).toBe(first)
        expect(alwaysFor(text, list.toReversed(), 'm')!.version).toBe(first)
      }),
    )
  })

  test('property: a larger weight moves values only to its version, and none away from it', () => {
    fc.assert(
      fc.property(
        value,
        weightsOf,
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.nat(),
        (text, weights, more, at) => {
          const before = items(...weights)
          const after = items(...weights)
          const grown = after[at % after.length]!
          grown.weight += more
          const [old, now] = [alwaysFor(text, before, 'm')!.version, alwaysFor(text, after, 'm')!.version]
          if (now !== old) expect(now).toBe(grown.version)
        },
      ),
    )
  })

  test('from 10 % to 20 %, the tenth stays and another tenth comes', () => {
    const [before, after] = [chosen(items(90, 10)), chosen(items(80, 20))]
    const left = before.filter((version, index) => version === '2.0' && after[index] !== '2.0')
    expect(left).toEqual([])
    expect(Math.abs(count(after, '2.0') - 2_000)).toBeLessThan(150)
  })

  test('who gets the canary of one model does not always get that of another', () => {
    const [one, other] = [chosen(items(90, 10), 'a'), chosen(items(90, 10), 'b')]
    const both = one.filter((version, index) => version === '2.0' && other[index] === '2.0')
    expect(both.length).toBeLessThan(200)
  })
})

import { afterEach, expect, jest, test } from '@jest/globals'
import type * as LostInJson from '../../backend-worker/output.ts'

const written: string[] = []
const spy = jest.spyOn(process.stderr, 'write').mockImplementation((text) => {
  written.push(String(text))
  return true
})

afterEach(() => {
  written.splice(0)
  jest.resetModules()
})

/** The module with its count of looks at the beginning, as in a new worker. */
const fresh = (): Promise<typeof LostInJson> =>
  import(`../../backend-worker/output.ts?${written.length}${Math.random()}`)

function nested(levels: number): object {
  let value: object = { end: new Map() }
  for (let level = 0; level < levels; level += 1) value = { next: value }
  return value
}

test('what JSON holds is no reason for a warning, also in values that convert themselves', async () => {
  const { warnOfNested } = await fresh()
  const own = { toJSON: () => 'x', inner: new Map() }
  class Point {
    x = 1
  }
  for (const item of [null, { at: new Date(), own, point: new Point(), list: [1, 'a', null, undefined] }, []])
    warnOfNested(item)
  expect(written).toEqual([])
})

test('one warning for a worker, in one line of bounded length', async () => {
  const { warnOfNested } = await fresh()
  warnOfNested({ [`a\nb${'x'.repeat(10_000)}`]: [Promise.resolve()] })
  warnOfNested({ other: new Set() })
  expect(written).toHaveLength(1)
  expect(written[0]).toMatch(/^An item has a Promise at \.a bx{400,490}\n$/)
})

test('values beyond the limits on depth and number cost nothing', async () => {
  const { warnOfNested } = await fresh()
  warnOfNested(nested(4000))
  warnOfNested({ many: Array.from({ length: 1000 }, () => 1), last: new Map() })
  expect(written).toEqual([])
  warnOfNested(nested(50))
  expect(written[0]).toContain(
    '.next.next.end, which JSON cannot hold: it becomes {}; use Object.fromEntries(map)',
  )
})

test('after twenty items nothing is looked at', async () => {
  const { warnOfNested } = await fresh()
  for (let item = 0; item < 20; item += 1) warnOfNested({ item })
  warnOfNested({ late: new Map() })
  expect(written).toEqual([])
  spy.mockRestore()
})

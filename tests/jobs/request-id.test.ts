import { expect, test } from '@jest/globals'
import { newRequestId } from '../../frontend/jobs/job-request.ts'

test('request ids are random UUIDs of version 4, all different', () => {
  const ids = Array.from({ length: 10_000 }, newRequestId)
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(new Set(ids).size).toBe(ids.length)
  // Each of the other digits takes every value.
  for (let at = 0; at < 36; at += 1) {
    const fixed = [8, 13, 14, 18, 23].includes(at) ? 1 : at === 19 ? 4 : 16
    expect([at, new Set(ids.map((id) => id[at])).size]).toEqual([at, fixed])
  }
})

test('no id has the random bytes of another', () => {
  const digits = Array.from({ length: 1_000 }, () => newRequestId().replaceAll('-', ''))
  const places = [0, 2, 4, 6, 8, 10, 18, 20, 22, 24]
  // Six bytes in a row, wherever they are in the id, without those that say the version.
  const seen = digits.flatMap((id) => places.map((at) => id.slice(at, at + 6)).filter((_, i) => i !== 5))
  expect(new Set(seen).size).toBeGreaterThan(seen.length - 10)
})

import { expect, test } from '@jest/globals'
import { eventData } from '../../console/server-state.ts'
import { bytes } from '../../console/format.ts'

test('bytes below ten of a unit have a decimal place, and more have none', () => {
  expect([0, 1023, 1536, 15_360, 15_872, 3 * 1024 ** 4].map(bytes)).toEqual([
    '0 B',
    '1,023 B',
    '1.5 KB',
    '15 KB',
    '16 KB',
    '3 TB',
  ])
})

test('bytes that nobody knows are a dash', () => {
  expect(bytes(undefined)).toBe('–')
})

test('the lines of data of an event stay lines', () => {
  expect(eventData('event: log\ndata: {\ndata:  "a": 1\ndata:}')).toBe('{\n "a": 1\n}')
})

test('a comment has no data', () => {
  expect(eventData(': keep-alive')).toBeUndefined()
})

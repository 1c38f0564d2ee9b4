import { expect, test } from '@jest/globals'
import type { End } from '../contract/dialect.ts'
import { Ledger, type Order, type Problem } from './ledger.ts'

const ORDER: Order = { id: 'a', n: 3 }
const FINISHED: End = { kind: 'finished' }
const FAILED: End = { kind: 'failed', message: 'Worker died.' }

function problems(texts: string[], end: End, order = ORDER, isExcused = false): Problem[] {
  const ledger = new Ledger()
  const items = texts.map((text) => ({ text, at: 0 }))
  ledger.stream('test', order, { items, end }, isExcused)
  return ledger.findings.map(({ problem }) => problem)
}

test.each<[string, string[], End, Problem[]]>([
  ['everything in order', ['<a#1>xx\n', '<a#2>', '<a#3>x'], FINISHED, []],
  ['one text of all items, cut anywhere', ['<a#1>x', 'x\n<a', '#2><a#3>'], FINISHED, []],
  ['an item in the middle missing', ['<a#1>', '<a#3>'], FINISHED, ['lost']],
  ['the last item missing', ['<a#1>', '<a#2>'], FINISHED, ['lost']],
  ['nothing at all', [], FINISHED, ['lost']],
  ['an item twice', ['<a#1>', '<a#1>', '<a#2>', '<a#3>'], FINISHED, ['doubled']],
  ['an item of another request', ['<a#1>', '<b#2>', '<a#3>'], FINISHED, ['mixed']],
  ['half an item', ['<a#1>', '<a#'], FINISHED, ['mixed']],
  ['more than was asked for', ['<a#1>', '<a#2>', '<a#3>', '<a#4>'], FINISHED, ['mixed']],
  ['a gap before an error', ['<a#2>'], FAILED, ['lost']],
  ['an error that nothing explains', ['<a#1>'], FAILED, ['failed without a fault']],
  ['a client that left', ['<a#1>'], { kind: 'left' }, []],
])('%s', (_name, texts, end, expected) => {
  expect(problems(texts, end)).toEqual(expected)
})

test('an error that a fault explains is none, unless it came too late', () => {
  expect(problems(['<a#1>'], FAILED, ORDER, true)).toEqual([])
  const late: End = { kind: 'failed', message: 'nothing for 30000 ms' }
  expect(problems(['<a#1>'], late, ORDER, true)).toEqual(['no end in time'])
})

test('a handler that was told to throw must not end in success', () => {
  const order = { ...ORDER, breaksAfter: 3 }
  expect(problems(['<a#1>', '<a#2>', '<a#3>'], FINISHED, order)).toEqual(['cut but reported as a success'])
  expect(problems(['<a#1>', '<a#2>'], FAILED, order)).toEqual([])
})

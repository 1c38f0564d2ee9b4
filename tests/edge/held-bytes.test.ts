import { expect, test } from '@jest/globals'
import { HeldBytes, type HeldByConnection } from '../../frontend/edge/held-bytes.ts'

const cut: string[] = []
let now = 0

function connections(limit: number, ...names: string[]): [HeldBytes, ...HeldByConnection[]] {
  const answers = new HeldBytes(limit, () => now)
  cut.length = 0
  return [
    answers,
    ...names.map((name) => answers.open(name.length > 1 ? name : '10.0.0.1', () => cut.push(name))),
  ]
}

test('up to the limit nobody is closed; beyond it, the connection that has most', () => {
  const [answers, a, b, c] = connections(100, 'a', 'b', 'c')
  a!.add(30)
  b!.add(40)
  c!.add(30)
  expect([cut, answers.bytes]).toEqual([[], 100])
  a!.add(1)
  expect([cut, answers.bytes]).toEqual([['b'], 61])
})

test('what was read, or belonged to a connection that is closed, counts no more', () => {
  const [answers, a, b] = connections(100, 'a', 'b')
  a!.add(90)
  a!.add(-90)
  b!.add(90)
  b!.close()
  b!.close()
  expect(answers.bytes).toBe(0)
  a!.add(100)
  expect(cut).toEqual([])
})

test('a connection that was closed counts nothing that is still on its way', () => {
  const [answers, a, b] = connections(100, 'a', 'b')
  a!.add(80)
  b!.add(30)
  expect(cut).toEqual(['a'])
  a!.add(50)
  a!.add(-80)
  expect([cut, answers.bytes]).toEqual([['a'], 30])
})

test('many connections of one address do not close a slow reader of another', () => {
  const [answers, a, b, slow] = connections(100, 'a', 'b', '10.0.0.2')
  slow!.add(45)
  a!.add(30)
  b!.add(25)
  expect(cut).toEqual([])
  b!.add(1)
  expect([cut, answers.bytes]).toEqual([['a'], 71])
})

test('an answer that was just written is none that nobody reads: of those that wait, older bytes weigh more', () => {
  const [answers, a, b, reader] = connections(100, '10.0.0.2', '10.0.0.3', '10.0.0.4')
  a!.add(30)
  b!.add(29)
  now += 5_000
  reader!.add(40)
  expect(cut).toEqual([])
  reader!.add(2)
  expect([cut, answers.bytes]).toEqual([['10.0.0.2'], 71])
})

test('bytes weigh no more after five seconds than then: one who reads slowly stays before many', () => {
  const [, slow, a, b] = connections(100, '10.0.0.2', 'a', 'b')
  slow!.add(20)
  now += 60_000
  a!.add(41)
  b!.add(38)
  now += 5_000
  b!.add(2)
  expect(cut).toEqual(['a'])
})

test('who has read all and waits anew is as new as its bytes', () => {
  const [, a, b] = connections(100, '10.0.0.2', '10.0.0.3')
  a!.add(1)
  a!.add(-1)
  now += 5_000
  b!.add(50)
  now += 2_500
  a!.add(51)
  expect(cut).toEqual(['10.0.0.3'])
})

test('a burst of one address does not have those cut who hold a fraction of it for long', () => {
  const [, slow, a, b] = connections(100, '10.0.0.2', 'a', 'b')
  slow!.add(25)
  now += 60_000
  a!.add(40)
  b!.add(36)
  expect(cut).toEqual(['a'])
})

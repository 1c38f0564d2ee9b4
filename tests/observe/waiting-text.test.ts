import { expect, test } from '@jest/globals'
import { WaitingText } from '../../frontend/observe/logs/waiting-text.ts'

const line = (letter: string): string => letter.repeat(10_000)

test('what is being written stays as it is, though a block comes back and is used again', () => {
  const text = new WaitingText()
  text.add(line('a'))
  text.giveBack(text.take())
  text.add(line('b'))
  const written = text.take()
  text.add(line('c'))
  expect([written.toString(), text.take().toString()]).toEqual([line('b'), line('c')])
})

test('it is full from 128 KiB on, until it is taken', () => {
  const text = new WaitingText()
  text.add('a'.repeat(131_071))
  expect(text.isFull).toBe(false)
  text.add('a')
  expect(text.isFull).toBe(true)
  text.take()
  expect([text.isFull, text.size]).toEqual([false, 0])
})

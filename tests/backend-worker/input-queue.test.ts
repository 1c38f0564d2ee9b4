import { expect, test } from '@jest/globals'
import { InputQueue } from '../../backend-worker/input-queue.ts'

test('an input that waits has its own memory: what is done to that of its message does not change it', async () => {
  let taken = 0
  const inputs = new InputQueue(() => {
    taken += 1
  })
  const message = Buffer.from('one-two')
  inputs.push(message.subarray(0, 3))
  inputs.push(message.subarray(4))
  inputs.end()
  message.fill('x')
  expect(taken).toBe(0)
  const read: string[] = []
  for await (const input of inputs) read.push(Buffer.from(input).toString())
  expect([read, taken]).toEqual([['one', 'two'], 2])
})

import { expect, test } from '@jest/globals'
import { InputQueue } from '../../backend-worker/input.ts'

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

test('an input counts as taken when the handler asks for it, whether it is there or not', async () => {
  let taken = 0
  const inputs = new InputQueue(() => {
    taken += 1
  })
  inputs.push(Buffer.from('one'))
  const reader = inputs[Symbol.asyncIterator]()
  await reader.next()
  expect(taken).toBe(1)
  const second = reader.next()
  expect(taken).toBe(2)
  inputs.push(Buffer.from('two'))
  expect((await second).value).toEqual(new Uint8Array(Buffer.from('two')))
})

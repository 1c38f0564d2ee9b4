import { expect, test } from '@jest/globals'
import { CreditStream, itemCost } from '../../protocol/credit-stream.ts'

test('the last item may overdraw the credit, and the next one needs a grant that pays the overdraft back', () => {
  const credit = new CreditStream(1)
  expect([credit.consume(1000), credit.open, credit.used]).toEqual([true, false, itemCost(1000)])
  expect([credit.consume(0), credit.used]).toEqual([false, itemCost(1000)])
  credit.grant(itemCost(1000) - 1)
  expect(credit.consume(0)).toBe(false)
  credit.grant(1)
  expect(credit.consume(0)).toBe(true)
  expect(credit.used).toBe(itemCost(0))
})

test('a sender that knows no credit is never refused', () => {
  const credit = new CreditStream(1, false)
  expect([credit.consume(10), credit.consume(10), credit.used]).toEqual([true, true, 2 * itemCost(10)])
})

test('asking while credit is left does not answer for later', async () => {
  const credit = new CreditStream(1)
  await credit.ready()
  credit.consume(0)
  let ready = false
  void credit.ready().then(() => (ready = true))
  await new Promise(setImmediate)
  expect(ready).toBe(false)
})

test('a sender is ready when credit is left after those that waited, or nothing more is sent', async () => {
  const credit = new CreditStream(1)
  credit.consume(0)
  let ready = 0
  void credit.ready().then(() => (ready += 1))
  credit.grant(itemCost(0))
  credit.consume(0)
  await new Promise(setImmediate)
  expect(ready).toBe(0)
  void credit.ready().then(() => (ready += 1))
  credit.close()
  await new Promise(setImmediate)
  expect(ready).toBe(2)
})

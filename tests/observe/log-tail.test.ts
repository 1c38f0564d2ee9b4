import { expect, test } from '@jest/globals'
import { logEntry } from '../../frontend/observe/logs/log-line.ts'
import { LogTail } from '../../frontend/observe/logs/logger.ts'

const json = (more: object): string => JSON.stringify({ level: 30, time: 0, msg: 'x', ...more })

test('of a long line only what is shown of it is kept', () => {
  const tail = new LogTail()
  const short = json({ thread: 'W-9000-m_1.0', msg: 'short' })
  const long = json({
    thread: 'W-9000-m_1.0',
    logger: 'MODEL_LOG',
    msg: 'a\nb'.repeat(2_000_000),
    detail: 'd',
  })
  tail.add(short)
  tail.add(long)
  tail.add(json({ err: { message: 'e', stack: 's\n'.repeat(1_000_000) } }))
  const [one, two, three] = tail.after(0).lines
  expect(one).toMatchObject({ thread: 'W-9000-m_1.0', message: 'short' })
  expect(two).toMatchObject({ thread: 'W-9000-m_1.0', logger: 'MODEL_LOG', level: 'info' })
  expect([two!.message.length, three!.message.length]).toEqual([16_385, 16_385])
  expect(tail.characters).toBeLessThan(60_000)
})

test.each([
  [16_384, 16_384, 'x'],
  [16_385, 16_385, '…'],
])('a message of %i characters is shown with %i, and ends with %s', (length, shown, end) => {
  const tail = new LogTail()
  tail.add(json({ msg: 'x'.repeat(length) }))
  const { message } = tail.after(0).lines[0]!
  expect([message.length, message.at(-1)]).toEqual([shown, end])
})

test.each([
  [10, 'debug'],
  [20, 'debug'],
  [30, 'info'],
  [40, 'warn'],
  [50, 'error'],
  [60, 'error'],
])('a line of level %i is told as %s', (level, told) => {
  expect(logEntry(json({ level })).level).toBe(told)
})

test('a line that names no logger is one of torchserve', () => {
  expect(logEntry(json({})).logger).toBe('torchserve')
  expect(logEntry(json({ logger: 'MODEL_LOG' })).logger).toBe('MODEL_LOG')
})

test('who comes back late hears how many lines are no longer there', () => {
  const tail = new LogTail()
  for (let i = 0; i < 510; i += 1) tail.add(json({ msg: `line ${i}` }))
  const { lines, dropped } = tail.after(3)
  expect([lines.length, lines[0]!.message, dropped]).toEqual([500, 'line 10', 7])
  expect(tail.after(505)).toMatchObject({ dropped: 0 })
})

import { expect, test } from '@jest/globals'
import type { FromWorker } from '../../protocol/messages.ts'
import { type Outlet, sendLog, sendMetric } from '../../backend-worker/outlet.ts'

const MB = 1024 * 1024

function outlet(unsentBytes: number): Outlet & { sent: FromWorker[] } {
  const sent: FromWorker[] = []
  return {
    sent,
    send: (message) => sent.push(message),
    sendItem: () => undefined,
    flushEarly: () => undefined,
    flush: () => undefined,
    unsentBytes,
  }
}

const METRIC = { type: 'metric', name: 'm', kind: 'counter', value: 1 } as unknown as FromWorker & {
  type: 'metric'
}

test('logs and metrics are sent as long as the frontend keeps up, and dropped when it does not', () => {
  for (const [unsent, messages] of [
    [4 * MB, 2],
    [4 * MB + 1, 0],
  ] as const) {
    const out = outlet(unsent)
    sendLog(out, 'info', 'a line')
    sendMetric(out, METRIC)
    expect(out.sent).toHaveLength(messages)
  }
})

test('a long line is cut to a length that fits a frame', () => {
  const out = outlet(0)
  sendLog(out, 'info', 'x'.repeat(100_000), 'r')
  expect(out.sent).toEqual([{ type: 'log', level: 'info', message: 'x'.repeat(32_768), requestId: 'r' }])
})

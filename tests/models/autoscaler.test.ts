import { expect, test } from '@jest/globals'
import { Autoscaler, type ScalableModel } from '../../frontend/models/autoscaler.ts'

const SETTINGS = { targetQueueTime: 1, scaleUpInterval: 1, scaleDownAfter: 1_000, scaleToZeroAfter: 1_000 }

test('the load that a request has waited for is measured, no later one', () => {
  const workers = {
    ...{ wanted: 0, ready: 0, failure: undefined },
    endDrained: () => undefined,
    load: () => ({ starting: 0, failing: false, draining: 0, leaving: 0, slots: 0, busy: 0 }),
    resize: (count: number) => void (workers.wanted = count),
  }
  const queue = { backlog: () => ({ jobs: 1, since: performance.now() }) }
  const model = { minWorkers: 0, maxWorkers: 2, slots: 1, open: 1, ended: 0, queue, workers }
  const scaler = new Autoscaler(model as unknown as ScalableModel, SETTINGS, 1)
  expect(scaler.loaded()).toBeUndefined()
  scaler.waits()
  expect(workers.wanted).toBe(1)
  expect(scaler.loaded()).toBeGreaterThanOrEqual(0)
  expect(scaler.loaded()).toBeUndefined()
  scaler.stop()
})

import { expect, test } from '@jest/globals'
import { processors } from '../../common/processors.ts'
import type { Model } from '../../frontend/models/model.ts'
import { type LaunchContext, rankOptions } from '../../frontend/workers/launch.ts'

test('busy_poll_microseconds is what the frontend polls for, if it has two processors', () => {
  const settings = {
    busyPollMicroseconds: 150,
    maxRequestSize: 1000,
    maxResponseSize: 1000,
    initialDistributionPort: 29_500,
  }
  const model = {
    settings: { workerWrapper: [], parallelLevel: 1, batchSize: 1 },
    prepared: { modelDir: '/models/m', workDir: '/work' },
  }
  const context = { settings, gpus: { list: [], vendor: undefined, warning: undefined } }
  const [rank] = rankOptions(
    model as unknown as Model,
    { workerId: 9000, serial: 's', devices: [], threads: 1 },
    context as unknown as LaunchContext,
    '/sockets',
  )
  expect(rank!.busyPollMs).toBe(processors() > 1 ? 0.15 : 0)
})

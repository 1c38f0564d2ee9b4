import { expect, test } from '@jest/globals'
import { ConfigReader } from '../../frontend/models/config-reader.ts'
import { schedulingSettings } from '../../frontend/models/scheduling-settings.ts'

const NO_RANKS = { parallelType: '', parallelLevel: 0 } as const

function read(
  config: Record<string, unknown>,
  parallel: Parameters<typeof schedulingSettings>[2] = NO_RANKS,
) {
  const reader = new ConfigReader(config)
  return { ...schedulingSettings(reader, 4, parallel), warnings: reader.warnings }
}

test('without any key a model has plain batches, one at a time', () => {
  expect(read({})).toEqual({
    asyncCommunication: false,
    maxConcurrency: 1,
    tensorConcurrency: 100,
    batchesAhead: 64,
    continuousBatching: false,
    useJobTicket: false,
    sequenceBatching: false,
    sequenceMaxIdleMSec: 0,
    sequenceTimeoutMSec: 0,
    maxNumSequence: 0,
    maxSequenceJobQueueSize: 0,
    warnings: [],
  })
})

test('limits of sequences are 0 without sequenceMaxIdleMSec, and 1 by default with it', () => {
  const limits = { sequenceTimeoutMSec: 7, maxNumSequence: 3 }
  const none = { sequenceTimeoutMSec: 0, maxNumSequence: 0, maxSequenceJobQueueSize: 0 }
  expect(read(limits)).toMatchObject(none)
  expect(read({ ...limits, sequenceMaxIdleMSec: 5 })).toMatchObject({ ...limits, maxSequenceJobQueueSize: 1 })
  expect(read({ sequenceBatching: true })).toMatchObject({ maxNumSequence: 1, maxSequenceJobQueueSize: 1 })
})

test.each([
  [{ asyncCommunication: true }, 100],
  [{ asyncCommunication: true, maxConcurrency: 3 }, 3],
  [{ continuousBatching: true }, 4],
  [{ continuousBatching: true, sequenceBatching: true, sequenceMaxIdleMSec: 1 }, 8],
])('%j: a worker has %d slots', (config, slots) => {
  expect(read(config).maxConcurrency).toBe(slots)
})

test.each([
  [{}, 100],
  [{ maxConcurrency: 'many' }, 100],
  [{ maxConcurrency: 3 }, 3],
  [{ asyncCommunication: false }, 1],
  [{ asyncCommunication: true }, 100],
  [{ continuousBatching: false }, 1],
  [{ continuousBatching: true }, 4],
])('%j: a worker whose handler takes tensors has %d slots', (config, slots) => {
  expect(read(config).tensorConcurrency).toBe(slots)
})

test('the slots that a register request names count for every kind of handler', () => {
  const reader = new ConfigReader({ maxConcurrency: 3 })
  expect(schedulingSettings(reader, 4, NO_RANKS, 7)).toMatchObject({
    maxConcurrency: 7,
    tensorConcurrency: 7,
  })
})

test('sequenceBatching without an idle time gets one, and a warning', () => {
  const { sequenceMaxIdleMSec, warnings } = read({ sequenceBatching: true })
  expect(sequenceMaxIdleMSec).toBe(60_000)
  expect(warnings).toEqual([expect.stringContaining('sequenceMaxIdleMSec')])
})

test('ranks that would each make steps of their own are refused', () => {
  const continuous = { continuousBatching: true }
  expect(() => read(continuous, { parallelType: 'tp', parallelLevel: 2 })).toThrow(
    expect.objectContaining({ code: 'INVALID_MODEL' }),
  )
  expect(read(continuous, { parallelType: 'pp', parallelLevel: 2 }).continuousBatching).toBe(true)
  expect(read(continuous, { parallelType: 'tp', parallelLevel: 1 }).continuousBatching).toBe(true)
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { loadSettings } from '../../frontend/config/load-settings.ts'
import { createLogger } from '../../frontend/observe/logs/logger.ts'
import type { WorkerGroupEvents } from '../../frontend/workers/worker-group.ts'
import { COUNT } from '../support/count.ts'
import { heldBack, type Held } from '../support/held.ts'
import { tempDir } from '../support/temp.ts'
import { FakeGroup } from './fake-group.ts'

let begun: Held<FakeGroup>

jest.unstable_mockModule('../../frontend/workers/runtimes.ts', () => ({
  createGroup: (_model: unknown, _start: unknown, _context: unknown, events: WorkerGroupEvents) => {
    const group = new FakeGroup(events)
    begun.open(group)
    return group
  },
}))

const { startServer } = await import('../../frontend/server.ts')

beforeEach(() => {
  begun = heldBack()
})
afterEach(() => {
  jest.useRealTimers()
})

/** A start that waits for a model whose processes the test plays. It does not load, and the server ends. */
async function failedStart() {
  const folder = tempDir()
  const config = join(folder, 'config.properties')
  const addresses = ['inference', 'management', 'metrics'].map((each) => `${each}_address=http://127.0.0.1:0`)
  const more = ['grpc_inference_port=0', 'grpc_management_port=0', 'default_workers_per_model=1']
  writeFileSync(config, [...addresses, ...more, `load_models=${COUNT}`, ''].join('\n'))
  const { settings } = await loadSettings({ tsConfig: config }, { TEMP: folder })
  const { log, tail } = createLogger({ level: 'info', format: 'text', console: undefined })
  let end = ''
  const ended = startServer(
    { ...settings, tempDir: folder },
    { log, logTail: tail, waitForModels: true },
  ).then(
    () => (end = 'started'),
    (error: unknown) => (end = (error as Error).message),
  )
  const group = await begun.opened
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] })
  group.connected()
  await group.loadFails('HANDLER_FAILED', 'no weights')
  // By the worker, and by the server that ends.
  while (group.endsAsked < 2) await turn()
  for (let k = 0; k < 20; k += 1) await turn()
  const lines = (): string[] => tail.after(0).lines.map(({ message }) => message)
  return { group, ended, lines, end: () => end }
}

test('a start that fails ends when the log has what its workers printed', async () => {
  const { group, ended, lines, end } = await failedStart()
  expect(end()).toBe('')
  group.events.onOutput('stdout', 'last words', '')
  await group.ends()
  expect(await ended).toContain('no weights')
  expect(lines()).toContain('last words')
})

test('it waits three seconds for processes that do not end', async () => {
  const { ended, end } = await failedStart()
  jest.advanceTimersByTime(2999)
  await turn()
  expect(end()).toBe('')
  jest.advanceTimersByTime(1)
  expect(await ended).toContain('no weights')
})

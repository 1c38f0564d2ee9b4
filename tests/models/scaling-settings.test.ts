import { expect, test } from '@jest/globals'
import { resolveModelSettings } from '../../frontend/models/resolve-model-settings.ts'
import type { RegisterRequest } from '../../frontend/models/operations.ts'
import { settingsOf } from '../config/support.ts'

const DEFAULTS = {
  targetQueueTime: 500,
  scaleUpInterval: 5000,
  scaleDownAfter: 60_000,
  scaleToZeroAfter: 300_000,
}

function resolved(yaml: Record<string, unknown>, file = '', request: Partial<RegisterRequest> = {}) {
  const { settings, warnings } = resolveModelSettings(request, yaml, {}, settingsOf({ file }).settings)
  const { scaling, minWorkers, maxWorkers } = settings
  return { scaling, workers: [minWorkers, maxWorkers], warnings }
}

test('a model scales if its file or the server says so', () => {
  expect(resolved({}).scaling).toBeUndefined()
  expect(resolved({ scaling: true }).scaling).toEqual(DEFAULTS)
  expect(resolved({ scaling: {} }).scaling).toEqual(DEFAULTS)
  expect(resolved({}, 'scaling=true').scaling).toEqual(DEFAULTS)
  expect(resolved({ scaling: false }, 'scaling=true').scaling).toBeUndefined()
})

test('its file comes before the keys of the server', () => {
  const file = 'scale_to_zero_after=3\n'
  const own = { scaling: { scaleDownAfter: 0.5 } }
  expect(resolved(own, file).scaling).toEqual({
    ...DEFAULTS,
    scaleDownAfter: 500,
    scaleToZeroAfter: 3000,
  })
})

test('what is wrong or misspelt is said', () => {
  expect(resolved({ scaling: { scaleDownAfter: 0, scaleUpIntervall: 3 } }).warnings).toEqual([
    'scaling: scaleDownAfter must be a number above 0, found 0; the default is used',
    'scaling: scaleUpIntervall is not a key of the server, so only the handler sees it: did you mean scaleUpInterval?',
  ])
  expect(resolved({ scaling: 'yes' }).warnings).toEqual([
    'scaling must be a map, found "yes"; the default is used',
  ])
})

test('a model with job tickets does not scale: its requests do not wait', () => {
  const { scaling, warnings } = resolved({ scaling: true, useJobTicket: true })
  expect(scaling).toBeUndefined()
  expect(warnings).toEqual(['scaling has no effect here: with useJobTicket no request waits'])
  expect(resolved({ useJobTicket: true }, 'scaling=true').warnings).toEqual([])
})

test.each<[Record<string, unknown>, Partial<RegisterRequest>, number[]]>([
  [{ minWorkers: 0, maxWorkers: 4 }, {}, [0, 4]],
  [{ maxWorkers: 4 }, {}, [1, 4]],
  [{ minWorkers: 3 }, {}, [3, 3]],
  [{ minWorkers: 3, maxWorkers: 2 }, {}, [3, 3]],
  [{ minWorkers: 1, maxWorkers: 4 }, { initialWorkers: 2 }, [2, 4]],
  [{ minWorkers: 1, maxWorkers: 4 }, { initialWorkers: 6 }, [6, 6]],
  [{ minWorkers: 1, maxWorkers: 4 }, { initialWorkers: 0, maxWorkers: 0 }, [0, 0]],
])('the bounds of %j and the call %j', (yaml, request, workers) => {
  expect(resolved({ scaling: true, ...yaml }, '', request).workers).toEqual(workers)
})

test('without scaling, minWorkers below 1 is 1', () => {
  expect(resolved({ minWorkers: 0, maxWorkers: 4 }).workers).toEqual([1, 4])
})

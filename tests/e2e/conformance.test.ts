import { beforeAll, describe, expect, test } from '@jest/globals'
import { LIMITS } from '../contract/points.ts'
import { report } from '../contract/report.ts'
import { COUNT } from '../support/count.ts'
import { ALL_DIALECTS, DIALECTS } from '../support/dialects.ts'
import { countFolder } from '../support/model-folder.ts'
import { startServer } from '../support/server.ts'

/**
 * The dialects of `npm run conformance`. The others need JSON from a handler with `handle`, or use sequences.
 */
const ASKED = DIALECTS.filter(
  ({ name, models }) =>
    models.includes('paced') &&
    name !== 'V2 ModelInfer (TorchServe)' &&
    name !== 'TorchServe StreamPredictions2',
)

const ASYNC = { minWorkers: 1, maxWorkers: 1, asyncCommunication: true, maxConcurrency: 100 }
const IN_SECONDS = {
  firstResponseTimeout: LIMITS.first / 1000,
  gapTimeout: LIMITS.gap / 1000,
  requestTimeout: LIMITS.total / 1000,
}

const lines: string[] = []

beforeAll(async () => {
  const server = await startServer({
    models: [
      COUNT,
      countFolder('limited', { ...ASYNC, ...IN_SECONDS }),
      countFolder('ranked', { ...ASYNC, parallelType: 'tp', parallelLevel: 2 }),
    ],
    config: ALL_DIALECTS,
  })
  await Promise.all(['count', 'limited', 'ranked'].map((model) => server.ready(model)))
  const models = { model: 'count', limited: 'limited', ranked: 'ranked' }
  const asked = ASKED.map(async (dialect) => {
    const client = dialect.at(server.ports[dialect.port])
    await report([client], models, (line) => lines.push(line))
    client.close()
  })
  await Promise.all(asked)
})

describe('the report of `npm run conformance` on this server', () => {
  test.each(ASKED.map(({ name, whole }) => [name, whole ? 5 : 11] as const))(
    'says that all points hold: %s',
    (name, least) => {
      const own = lines.filter((line) => line.slice(8).startsWith(`${name}: `))
      expect(own.filter((line) => !line.startsWith('holds'))).toEqual([])
      expect(own.length).toBeGreaterThanOrEqual(least)
    },
  )
})

import { expect, test } from '@jest/globals'
import { createInferenceApp } from '../../frontend/dialects/rest-apps.ts'
import { REST_DIALECTS } from '../../frontend/dialects/index.ts'
import { ask, startRig } from '../support/http/rig.ts'

/** Every path of every dialect that names a model, with a body that some of them would take. */
const PATHS = [
  ...new Set(
    REST_DIALECTS.flatMap((dialect) => dialect.paths())
      .map(({ path }) => path)
      .filter((path) => path.includes('{model_name}')),
  ),
]

test('without a token every path answers the same for a model that is there and one that is not', async () => {
  const rig = await startRig(createInferenceApp, { tokens: true })
  const told: Record<string, unknown[]> = {}
  for (const path of PATHS) {
    for (const model of ['m', 'none', 'native', 'loading']) {
      const filled = path.replaceAll('{model_name}', model).replaceAll(/\{\w+\}/g, '1.0')
      const { status, text } = await ask(rig, filled, { method: 'POST', body: '{}' })
      told[path] = [...new Set([...(told[path] ?? []), JSON.stringify([status, text])])]
    }
  }
  expect(PATHS.length).toBeGreaterThan(8)
  expect(Object.entries(told).filter(([, answers]) => answers.length > 1)).toEqual([])
  expect(rig.models.jobs).toEqual([])
})

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { describePython } from '../support/python/test-python.ts'
import { broughtPython } from './packages.ts'
import { PYTHON_CASES, PYTHON_HANDLE } from './python-cases.ts'
import { HAS_PACKAGES, possible, runCases, storeOf, type Case } from './run-cases.ts'

function write(folder: string, { source }: Case): void {
  const model = { modelName: folder.split('/').at(-1), modelVersion: '1.0', handler: 'handler.py' }
  mkdirSync(join(folder, 'MAR-INF'))
  writeFileSync(join(folder, 'MAR-INF', 'MANIFEST.json'), JSON.stringify({ runtime: 'python', model }))
  writeFileSync(join(folder, 'handler.py'), source + PYTHON_HANDLE)
}

await describePython('what people bring, in Python', ({ bin }) => {
  test('works with default settings, without a warning', async () => {
    const cases = await possible(PYTHON_CASES)
    const path = HAS_PACKAGES ? await broughtPython() : bin
    const seen = await runCases(cases, storeOf(cases, write), path)
    expect(seen).toEqual({
      answers: Object.fromEntries(cases.map(([name, { answer }]) => [name, answer])),
      warnings: [],
    })
  }, 900_000)
})

import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { REPOSITORY } from '../support/server.ts'
import { broughtModules } from './packages.ts'
import { HAS_PACKAGES, possible, runCases, storeOf } from './run-cases.ts'
import { TYPESCRIPT_CASES, TYPESCRIPT_HANDLE } from './typescript-cases.ts'

test('what people bring, in TypeScript, works with default settings, without a warning', async () => {
  const cases = await possible(TYPESCRIPT_CASES)
  const modules = HAS_PACKAGES ? await broughtModules() : join(REPOSITORY, 'node_modules')
  const store = storeOf(cases, (folder, { source }) => {
    writeFileSync(join(folder, 'handler.ts'), source + TYPESCRIPT_HANDLE)
    symlinkSync(modules, join(folder, 'node_modules'))
  })
  expect(await runCases(cases, store, '')).toEqual({
    answers: Object.fromEntries(cases.map(([name, { answer }]) => [name, answer])),
    warnings: [],
  })
}, 900_000)

import { readdirSync, readFileSync } from 'node:fs'
import base from './jest.config.mjs'

const worker = new URL('./tests/backend-worker/', import.meta.url)
/** Tests that start the worker's process from dist, where no mutant is. */
const starting = readdirSync(worker).filter((name) =>
  /worker-process|scripted/.test(readFileSync(new URL(name, worker), 'utf8')),
)

/** For `npm run mutants`: the unit tests of the components that Stryker changes. */
export default {
  ...base,
  testMatch: ['protocol', 'jobs', 'common', 'backend-worker', 'config', 'auth'].map(
    (folder) => `**/tests/${folder}/**/*.test.ts`,
  ),
  testPathIgnorePatterns: ['/node_modules/', ...starting.map((name) => `/backend-worker/${name}`)],
  reporters: [],
}

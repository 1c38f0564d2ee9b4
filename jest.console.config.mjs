import base from './jest.config.mjs'

/** `npm run test:console`: the console's page in a real Chromium, which must be in PATH. */
export default {
  ...base,
  testMatch: ['**/tests/console/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  testTimeout: 60_000,
}

import base from './jest.config.mjs'

// The tests of Python models with the real PyTorch (tests/support/python/test-python.ts).
process.env.TEST_PYTHON = 'torch'

/** `npm run test:python`: docs/python-archives.md. */
export default {
  ...base,
  testMatch: ['**/tests/python/**/*.test.ts', '**/tests/torch/**/*.test.ts', '**/tests/brought/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
}

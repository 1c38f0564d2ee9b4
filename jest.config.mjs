/**
 * Needs NODE_OPTIONS=--experimental-vm-modules (npm test sets it): the server and its dependencies are ES
 * modules.
 */
export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/tests'],
  testMatch: ['**/*.test.ts'],
  // Everything that tests leave in TMPDIR lies in a folder of the run.
  globalSetup: '<rootDir>/tests/support/global-setup.ts',
  globalTeardown: '<rootDir>/tests/support/global-teardown.ts',
  setupFiles: ['<rootDir>/tests/support/no-kill-all.ts'],
  // They need PyTorch (npm run test:python) and Chromium (npm run test:console).
  testPathIgnorePatterns: ['/node_modules/', '/tests/torch/', '/tests/console/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
  moduleNameMapper: {
    '^torchserve-ts$': '<rootDir>/backend-worker/index.ts',
    '^torchserve-ts/gguf$': '<rootDir>/handlers/gguf/handler.ts',
    '^torchserve-ts/testing$': '<rootDir>/backend-worker/testing.ts',
  },
  reporters: ['default', '<rootDir>/tests/support/retries-reporter.mjs'],
  // Only what hangs needs it: on a machine with ten times too much to do, tests of two starts take two
  // minutes.
  testTimeout: 240_000,
  maxWorkers: 2,
  // A worker that has closed everything still needs most of a second to give back its memory on a busy
  // machine; the default is 500.
  workerGracefulExitTimeout: 10_000,
}

import { existsSync, readdirSync } from 'node:fs'
import tseslint from 'typescript-eslint'
import importX from 'eslint-plugin-import-x'
import { commentLength, noSectionCitations } from './tools/lint/comments.mjs'
import { noTextKeys } from './tools/lint/no-text-keys.mjs'

/**
 * Which room may import which (docs/internals/architecture.md). A room that is not named as allowed for a target is
 * forbidden, and so is everything in frontend/ that belongs to no room (server.ts, listeners.ts) but
 * package-info.ts.
 */
const rooms = {
  './common': [],
  './console': ['./common/server-events.ts', './common/curl-lines.ts'],
  './protocol': ['./common'],
  './backend-worker': ['./common', './protocol', './handlers/openai-provider/handler.ts'],
  './handlers': ['./common', './backend-worker'],
  './model-store': [],
  './model-archiver': ['./common'],
  './frontend/config': ['./common'],
  './frontend/observe': ['./common', './protocol', './frontend/config'],
  './frontend/auth': ['./common', './frontend/config'],
  './frontend/tls': ['./common', './frontend/config'],
  './frontend/jobs': ['./common', './protocol', './frontend/observe', './frontend/config'],
  './frontend/models': [
    './common',
    './model-archiver',
    './frontend/jobs',
    './frontend/observe',
    './frontend/config',
  ],
  './frontend/workers': [
    './common',
    './protocol',
    './model-archiver',
    './frontend/jobs',
    './frontend/models',
    './frontend/observe',
    './frontend/config',
  ],
  './frontend/workflows': [
    './common',
    './model-archiver',
    './frontend/jobs',
    './frontend/models',
    './frontend/observe',
    './frontend/config',
  ],
  './frontend/watch': ['./common', './frontend/jobs', './frontend/auth'],
  './frontend/edge': [
    './common',
    './frontend/jobs',
    './frontend/models/operations.ts',
    './frontend/models/readiness.ts',
    './frontend/models/model-errors.ts',
    './frontend/workflows/operations.ts',
    './frontend/watch',
    './frontend/observe',
    './frontend/config',
    './frontend/auth',
  ],
  './frontend/dialects': [
    './common',
    './frontend/edge',
    './frontend/jobs',
    './frontend/models',
    './frontend/workflows/operations.ts',
    './frontend/watch',
    './frontend/config',
    './frontend/auth',
  ],
  './frontend/cli': [
    './common',
    './model-archiver',
    './frontend/config',
    './frontend/auth',
    './frontend/models',
    './frontend/workers',
    './frontend/observe',
    './frontend/server.ts',
    './frontend/server-api.ts',
  ],
}

/** Each folder of frontend/dialects is an adapter of its own, and imports no other. */
const dialectFolders = readdirSync(new URL('./frontend/dialects', import.meta.url), { withFileTypes: true })
  .filter((each) => each.isDirectory())
  .map(({ name }) => `./frontend/dialects/${name}`)
/**
 * But this one: TorchServe's own Open Inference package adapts that protocol to TorchServe's rules, so it
 * knows both.
 */
const dialects = {
  ...Object.fromEntries(dialectFolders.map((folder) => [folder, []])),
  './frontend/dialects/torchserve-open-inference': [
    './frontend/dialects/torchserve',
    './frontend/dialects/open-inference',
  ],
}

/** Product code that is longer than a file should be, with the lines that each may have. It only shrinks. */
const LONG_FILES = {
  'frontend/server.ts': 371,
  'frontend/jobs/sequence-queue.ts': 355,
  'frontend/models/startup-models.ts': 355,
  'frontend/workers/worker.ts': 357,
  'frontend/jobs/job.ts': 341,
  'frontend/workers/requests.ts': 316,
  'frontend/models/manager.ts': 319,
}
const MAX_LINES = 300

const named = [...Object.entries(rooms).flat(2), ...Object.keys(dialects), ...Object.keys(LONG_FILES)]
const absent = named.filter((path) => !existsSync(new URL(path, import.meta.url)))
if (absent.length > 0)
  throw new Error(`eslint.config.mjs names paths that are not there: ${absent.join(', ')}`)

const zones = [
  ...Object.entries(rooms).flatMap(([target, allowed]) =>
    Object.keys(rooms)
      .filter((from) => from !== target && !allowed.includes(from))
      .map((from) => ({
        target,
        from,
        except: allowed.filter((a) => a.startsWith(`${from}/`)).map((a) => `.${a.slice(from.length)}`),
        message: `${target} must not import ${from} (docs/internals/architecture.md)`,
      })),
  ),
  ...Object.entries(dialects).flatMap(([target, allowed]) =>
    Object.keys(dialects)
      .filter((from) => from !== target && !allowed.includes(from))
      .map((from) => ({
        target,
        from,
        message: `${target} must not import ${from} (docs/internals/architecture.md)`,
      })),
  ),
]

const house = {
  rules: {
    'comment-length': commentLength,
    'no-section-citations': noSectionCitations,
    'no-text-keys': noTextKeys,
  },
}

export default tseslint.config(
  {
    ignores: [
      'dist',
      '.build',
      'node_modules',
      'coverage',
      'tools/empty-package',
      // Projects of their own, with packages that are not installed here.
      'templates',
      '**/*.mjs',
      '**/*.js',
      '**/*.cjs',
    ],
  },
  ...tseslint.configs.strictTypeChecked,
  {
    files: ['**/*.ts', '**/*.tsx'],
    plugins: { 'import-x': importX },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    settings: { 'import-x/resolver': { node: { extensions: ['.ts', '.tsx', '.js'] } } },
    rules: {
      'import-x/no-restricted-paths': ['error', { zones }],
      'import-x/no-cycle': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', package: 'node:test', name: 'test' }] },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/unbound-method': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  {
    files: ['**/*.ts', '**/*.tsx'],
    ignores: ['tests/**', 'benchmarks/**'],
    plugins: { house },
    rules: { 'house/no-text-keys': 'error' },
  },
  {
    files: ['**/*.ts', '**/*.tsx'],
    ignores: ['tests/**', 'benchmarks/**', 'examples/**', 'deploy/**', 'site/**', 'workshop/**'],
    rules: { 'max-lines': ['error', MAX_LINES] },
  },
  ...Object.entries(LONG_FILES).map(([file, lines]) => ({
    files: [file],
    rules: { 'max-lines': ['error', lines] },
  })),
  {
    files: ['**/*.ts', '**/*.tsx'],
    // What runs in folders of its own.
    ignores: ['tests/**', 'benchmarks/**', 'examples/**', 'site/**', 'tools/**', 'workshop/**', 'console/**'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "CallExpression:matches([callee.name=/^mkdir(Sync)?$/], [callee.property.name=/^mkdir(Sync)?$/]) Property[key.name='recursive']",
          message: 'Recursive mkdir can try for ever; makeFolder of common/files.ts ends.',
        },
        {
          selector:
            'CallExpression[callee.name=/^set(Timeout|Interval)$/]:not([arguments.1.name=/^[A-Z_]+$/]):not([arguments.1.type=Literal])',
          message:
            'A delay that is not a constant may exceed what timers can count; common/timer.ts knows the limit.',
        },
      ],
    },
  },
  {
    files: ['frontend/{edge,dialects,jobs}/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          paths: ['node:worker_threads', 'node:child_process', 'execa'].map((name) => ({
            name,
            message:
              'A request waits for no thread or process: one that cannot be started would leave it open.',
          })),
        },
      ],
    },
  },
  {
    files: ['**/*.ts', '**/*.tsx'],
    plugins: { house },
    rules: { 'house/comment-length': 'error', 'house/no-section-citations': 'error' },
  },
  {
    files: ['tests/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['tests/**/*.ts'],
    ignores: ['tests/support/tools.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          paths: ['child_process', 'node:child_process', 'execa'].map((name) => ({
            name,
            allowTypeImports: true,
            message:
              'Tests start programs through tests/support/tools.ts, which gives each a TMPDIR of its own.',
          })),
        },
      ],
    },
  },
)

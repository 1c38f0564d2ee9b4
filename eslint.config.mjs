import tseslint from 'typescript-eslint'
import importX from 'eslint-plugin-import-x'

/**
 * Which room may import which (docs/architecture.md). A room that is not named as allowed for a target is forbidden.
 * http, grpc -> models <- workers -> protocol <- backend-worker; the frontend and the worker never meet.
 */
const rooms = {
  './protocol': [],
  './backend-worker': ['./protocol'],
  './model-archiver': ['./protocol'],
  './frontend/metrics': ['./protocol', './frontend/logs'],
  './frontend/logs': ['./frontend/config', './common/allowance.ts'],
  './frontend/config': ['./protocol'],
  './frontend/models': [
    './common/errors.ts',
    './common/json.ts',
    './common/dialects.ts',
    './common/header-lines.ts',
    './model-archiver',
    './frontend/metrics',
    './frontend/config',
  ],
  './frontend/workflows': [
    './common/errors.ts',
    './common/dialects.ts',
    './common/header-lines.ts',
    './model-archiver',
    './frontend/models',
    './frontend/metrics',
    './frontend/config',
  ],
  './frontend/python': [
    './common/errors.ts',
    './model-archiver',
    './frontend/config',
    './frontend/workers/lines.ts',
  ],
  './frontend/workers': [
    './protocol',
    './frontend/models',
    './frontend/metrics',
    './frontend/config',
    './frontend/python',
  ],
  './frontend/openai': [
    './common/dialects.ts',
    './common/errors.ts',
    './common/json.ts',
    './common/header-lines.ts',
    './common/nesting.ts',
    './protocol/openai',
    './frontend/models',
  ],
  './frontend/open-inference': [
    './common/dialects.ts',
    './common/errors.ts',
    './common/json.ts',
    './protocol/openai',
    './protocol/tensors',
    './frontend/models',
    './frontend/openai',
  ],
  './frontend/http': [
    './protocol/tensors',
    './frontend/open-inference',
    './frontend/openai',
    './common/errors.ts',
    './common/json.ts',
    './common/dialects.ts',
    './protocol/openai',
    './common/header-lines.ts',
    './frontend/models',
    './frontend/workflows/operations.ts',
    './frontend/metrics',
    './frontend/logs',
    './frontend/config',
    './frontend/auth',
  ],
  './frontend/grpc': [
    './protocol/tensors',
    './frontend/open-inference',
    './common/errors.ts',
    './common/dialects.ts',
    './common/header-lines.ts',
    './frontend/models',
    './frontend/workflows/operations.ts',
    './frontend/metrics',
    './frontend/logs',
    './frontend/config',
    './frontend/auth',
  ],
  './frontend/auth': ['./common/errors.ts'],
  './frontend/tls': ['./common/errors.ts', './frontend/config'],
}
const all = [...Object.keys(rooms)]
const zones = Object.entries(rooms).flatMap(([target, allowed]) =>
  all
    .filter((from) => from !== target && !allowed.some((a) => a === from))
    .map((from) => ({
      target,
      from,
      except: allowed.filter((a) => a.startsWith(`${from}/`)).map((a) => `.${a.slice(from.length)}`),
      message: `${target} must not import ${from} (see docs/architecture.md)`,
    })),
)

export default tseslint.config(
  {
    ignores: [
      'dist',
      '.build',
      'node_modules',
      'coverage',
      'tools/empty-package',
      '**/*.mjs',
      '**/*.js',
      '**/*.cjs',
    ],
  },
  ...tseslint.configs.strictTypeChecked,
  {
    files: ['**/*.ts'],
    plugins: { 'import-x': importX },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    settings: { 'import-x/resolver': { node: { extensions: ['.ts', '.js'] } } },
    rules: {
      'import-x/no-restricted-paths': ['error', { zones }],
      'import-x/no-cycle': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
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
    files: ['tests/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
)

import { buildSettings } from '../../../frontend/config/build-settings.ts'
import { KEYS } from '../../../frontend/config/keys.ts'
import { parseProperties } from '../../../frontend/config/properties.ts'
import type { Target } from '../target.ts'

const NAMES = Object.values(KEYS).map(({ name }) => name)

/** A line of the file for each key, with its default. */
function defaults(): string {
  return Object.values(KEYS)
    .map(({ name, fallback }) => `${name}=${fallback ?? ''}\n`)
    .join('')
}

const MODELS =
  '{"m":{"1.0":{"minWorkers":1,"maxWorkers":2,"batchSize":3,"maxBatchDelay":4,"responseTimeout":5}}}'
const SNAPSHOT =
  '{"name":"x.cfg","modelCount":1,"created":1,"models":{"m":{"1.0":{"defaultVersion":true,"marName":"m.mar","minWorkers":1,"maxWorkers":1,"batchSize":1,"maxBatchDelay":100,"responseTimeout":120}}}}'

/** config.properties, with the JSON in its values: a snapshot is such a file. */
export const properties: Target = {
  name: 'properties',
  seeds: () => [
    'inference_address=http://127.0.0.1:8080\nload_models=all\nmodels=' + MODELS + '\n',
    `model_snapshot=${SNAPSHOT}\n`,
    'a\\u0041=b\\\n  c\n! comment\nallowed_urls=http(s)?://.*,file:///a\nload_models=m=m.mar,n\n',
    defaults(),
  ],
  words: [
    ...NAMES,
    '\\u',
    '\\\n',
    '$$PATH$$',
    '=',
    'http://[::1]:0',
    'unix:/x',
    '(a+)+$',
    'all',
    '{"models":{',
  ],
  run: (input) => {
    const file = parseProperties(input.toString(), 'config.properties', { PATH: '/bin' })
    buildSettings({ file, flags: [], env: {} })
  },
}

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { availableParallelism } from 'node:os'
import { execa } from 'execa'
import { scratch } from '../../scratch.ts'
import { batchConfig, isBatchModel, type BatchModel, type Model, type Peer } from '../../peers/peer.ts'
import type { Target } from '../target.ts'
import { oursCommand, startWith } from '../ours.ts'
import { TORCHSERVE_API } from './torchserve.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const HANDLERS: Record<Model, string> = {
  echo: 'model-store/echo/handler.ts',
  hundred: 'benchmarks/handlers/hundred/handler.ts',
  timed: 'benchmarks/handlers/timed/handler.ts',
  idle: 'benchmarks/handlers/timed/handler.ts',
}
const BATCHES = 'benchmarks/handlers/batch/handler.ts'
/** For handlers that wait for something else than the processor. */
const SIDE_BY_SIDE = 'asyncCommunication: true\nmaxConcurrency: 2000\n'
let stores = 0

/** torchserve-ts as a user gets it: packed handlers without a model-config.yaml. */
export const ours: Peer = {
  name: 'torchserve-ts',
  title: 'torchserve-ts',
  packages: ['this checkout, built'],
  settings: [
    'handlers packed with torch-model-archiver-ts, no model-config.yaml',
    'default_workers_per_model=1 (with the default, 0, one per processor)',
    '--disable-token-auth, addresses on loopback; everything else by default',
    `idle streams: asyncCommunication: true, maxConcurrency: 2000 in model-config.yaml (docs/batching.md)`,
  ],
  ...TORCHSERVE_API,
  recommendedWorkers: availableParallelism(),
  install: () => Promise.resolve([]),
  start,
  startBatches: (models) => start(models, 1),
}

async function start(models: readonly (Model | BatchModel)[], workers: number): Promise<Target> {
  const store = scratch(`ours-store-${stores++}`)
  for (const model of models) await pack(model, store)
  const command = await oursCommand({
    models: [],
    config: `default_workers_per_model=${workers}\n`,
    modelStore: store,
  })
  command.args.splice(command.args.indexOf('--models') + 1, 0, 'all')
  const target = await startWith(command, models)
  return { ...target, name: ours.title }
}

async function pack(model: Model | BatchModel, store: string): Promise<void> {
  const handler = isBatchModel(model) ? BATCHES : HANDLERS[model]
  const config = scratch(`${model}.yaml`)
  writeFileSync(config, isBatchModel(model) ? batchConfig(model) : model === 'idle' ? SIDE_BY_SIDE : '')
  await execa(
    process.execPath,
    [
      join(ROOT, 'dist/model-archiver/cli.js'),
      ...['--model-name', model, '--version', '1.0', '--handler', join(ROOT, handler)],
      ...['--export-path', store],
      ...(model === 'idle' || isBatchModel(model) ? ['--config-file', config] : []),
    ],
    { stdin: 'ignore' },
  )
}

import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts } from '../../../tests/support/ports.ts'
import { installPython, pythonFolder } from '../../peers/cache.ts'
import { inferCall, inferJson } from '../../peers/open-inference.ts'
import type { Model, Peer } from '../../peers/peer.ts'
import { startProgram } from '../../peers/start.ts'
import { scratch } from '../../scratch.ts'
import type { Target } from '../target.ts'

const MODELS = fileURLToPath(new URL('../../handlers/peers/mlserver/models.py', import.meta.url))
const CLASSES: Record<Model, string> = { echo: 'Echo', hundred: 'Hundred', timed: 'Timed', idle: 'Timed' }
const PACKAGES = ['mlserver==1.7.1']
const SETTINGS = { debug: false, parallel_workers: 0, gzip_enabled: false, metrics_endpoint: null }
let starts = 0

export const mlserver: Peer = {
  name: 'mlserver',
  title: 'MLServer',
  packages: PACKAGES,
  settings: [
    `settings.json: ${JSON.stringify(SETTINGS)}, as its page "Streaming" has it`,
    'without parallel workers, which do not stream: the models run in the server, one process, no pipe in between',
    'models: async predict and predict_stream; REST streams by generate_stream (Server-Sent Events)',
  ],
  health: '/v2/health/ready',
  recommendedWorkers: 1,
  install: () => installPython('mlserver', PACKAGES),
  start,
  rest: (model, text) => ({
    path: `/v2/models/${model}/${model === 'echo' ? 'infer' : 'generate_stream'}`,
    headers: { 'content-type': 'application/json' },
    body: inferJson(text),
  }),
  grpc: (model, text) => inferCall(model === 'echo' ? 'ModelInfer' : 'ModelStreamInfer', model, text),
}

async function start(models: readonly Model[]): Promise<Target> {
  const folder = scratch(`mlserver-${starts++}`)
  for (const model of models) {
    mkdirSync(join(folder, model), { recursive: true })
    copyFileSync(MODELS, join(folder, model, 'models.py'))
    const settings = { name: model, implementation: `models.${CLASSES[model]}` }
    writeFileSync(join(folder, model, 'model-settings.json'), JSON.stringify(settings))
  }
  const [rest, grpc] = (await freePorts(2)) as [number, number]
  const settings = { ...SETTINGS, host: '127.0.0.1', http_port: rest, grpc_port: grpc }
  writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings))
  return startProgram(
    mlserver,
    models,
    [join(pythonFolder('mlserver').bin, 'mlserver'), 'start', folder],
    { restOrigin: `http://127.0.0.1:${rest}`, grpcOrigin: `http://127.0.0.1:${grpc}` },
    { cwd: folder },
  )
}

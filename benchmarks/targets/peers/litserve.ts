import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { freePorts } from '../../../tests/support/ports.ts'
import { installPython, pythonFolder } from '../../peers/cache.ts'
import type { Model, Peer } from '../../peers/peer.ts'
import { startProgram } from '../../peers/start.ts'
import { scratch } from '../../scratch.ts'
import type { Target } from '../target.ts'

const SERVER = fileURLToPath(new URL('../../handlers/peers/litserve/server.py', import.meta.url))
const PACKAGES = ['litserve==0.2.19']
const LIT_SERVER = { accelerator: 'cpu', devices: 1, fast_queue: true }
const RUN = { log_level: 'warning', generate_client_file: false }
let starts = 0

export const litserve: Peer = {
  name: 'litserve',
  title: 'LitServe',
  packages: PACKAGES,
  settings: [
    `LitServer(${JSON.stringify(LIT_SERVER)}): workers_per_device 1; fast_queue, as "LitServer" says from 100 requests/s on`,
    `run(${JSON.stringify(RUN)}), as its production example has it; num_api_servers by default: as many as workers of all models`,
    'uvicorn with uvloop and httptools',
    'REST streams: stream=True; idle streams: enable_async=True',
  ],
  health: '/health',
  recommendedWorkers: 1,
  install: () => installPython('litserve', PACKAGES),
  start,
  rest: (model, text) => ({
    path: `/${model}`,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(model === 'echo' ? JSON.stringify({ input: text }) : text),
  }),
}

async function start(models: readonly Model[], workers: number): Promise<Target> {
  const folder = scratch(`litserve-${starts++}`)
  mkdirSync(folder)
  const [port] = (await freePorts(1)) as [number]
  const settings = {
    models,
    server: { ...LIT_SERVER, workers_per_device: workers },
    run: { ...RUN, host: '127.0.0.1', port },
  }
  return startProgram(
    litserve,
    models,
    [pythonFolder('litserve').python, SERVER, JSON.stringify(settings)],
    { restOrigin: `http://127.0.0.1:${port}` },
    { cwd: folder },
  )
}

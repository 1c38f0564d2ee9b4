import { cpSync, symlinkSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts } from '../../../tests/support/ports.ts'
import { CACHE, installNode } from '../../peers/cache.ts'
import type { Model, Peer } from '../../peers/peer.ts'
import { startProgram } from '../../peers/start.ts'
import { scratch } from '../../scratch.ts'
import type { Target } from '../target.ts'

const HANDLERS = fileURLToPath(new URL('../../handlers/peers/fastify', import.meta.url))
const PACKAGES = ['fastify@5.12.8', 'piscina@5.3.2']
/** Far more than one idle stream each; the threads' own limit is memory. */
const IDLE_TASKS = 10_000
let starts = 0

export const fastify: Peer = {
  name: 'fastify',
  title: 'Fastify, piscina',
  packages: PACKAGES,
  settings: [
    'Fastify by default: no logger; NODE_ENV=production; bodies as buffers by a content type parser',
    'piscina: minThreads and maxThreads 1 (by default up to 1.5 per processor), concurrentTasksPerWorker 1, atomics sync, all its defaults',
    'streams: one MessagePort each, a Readable that Fastify sends ("Reply: Streams")',
    `idle streams: concurrentTasksPerWorker ${IDLE_TASKS} ("concurrentTasksPerWorker": for asynchronous tasks)`,
  ],
  health: '/ready',
  recommendedWorkers: Math.floor(availableParallelism() * 1.5),
  install: () => installNode('fastify', PACKAGES),
  start,
  rest: (model, text) => ({ path: `/${model}`, headers: {}, body: Buffer.from(text) }),
}

async function start(models: readonly Model[], workers: number): Promise<Target> {
  const folder = scratch(`fastify-${starts++}`)
  cpSync(HANDLERS, folder, { recursive: true })
  symlinkSync(join(CACHE, 'fastify', 'node_modules'), join(folder, 'node_modules'))
  const [port] = (await freePorts(1)) as [number]
  const side = models.includes('idle') ? { concurrentTasksPerWorker: IDLE_TASKS } : {}
  const settings = {
    port,
    fastify: { logger: false },
    piscina: { minThreads: workers, maxThreads: workers, ...side },
  }
  return startProgram(
    fastify,
    models,
    [process.execPath, join(folder, 'server.mjs'), JSON.stringify(settings)],
    { restOrigin: `http://127.0.0.1:${port}` },
    { cwd: folder, env: { NODE_ENV: 'production' } },
  )
}

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { REPOSITORY } from '../support/server-process.ts'

/** Workers that each of the models has that get more and fewer of them. */
export const WORKERS = 2

const HANDLERS = join(REPOSITORY, 'tests', 'support', 'handlers')
const KINDS = ['paced', 'native', 'chat'] as const
const SOURCES = { paced: 'paced', native: 'paced-native', chat: 'paced-chat' } as const
const STREAMING = { minWorkers: WORKERS, maxWorkers: WORKERS, asyncCommunication: true, maxConcurrency: 16 }

/** Their workers are killed. */
export const VICTIMS: readonly string[] = KINDS.map((kind) => `victim-${kind}`)
/** Their workers are stopped for a while and scaled away, which no client may notice. */
const STEADY: readonly string[] = KINDS.map((kind) => `steady-${kind}`)
export const SCALED: readonly string[] = [...VICTIMS, ...STEADY]
/** Registered and unregistered. */
export const GUEST = 'guest'
export const DIGEST = 'digest'
export const SUMS = 'sums'
/** All that are there from the start to the end. */
export const LOADED: readonly string[] = [...SCALED, DIGEST, SUMS]

export function isVictim(model: string): boolean {
  return VICTIMS.includes(model)
}

/** The models of each kind of handler that streams. */
export function modelsOf(kind: string): readonly string[] {
  return kind === 'paced' ? [`victim-paced`, `steady-paced`, GUEST] : [`victim-${kind}`, `steady-${kind}`]
}

/** Makes the model store with all of these. */
export async function makeStore(store: string): Promise<void> {
  for (const kind of KINDS) {
    const handler = join(HANDLERS, SOURCES[kind], 'handler.ts')
    await folder(store, `victim-${kind}`, handler, STREAMING)
    await folder(store, `steady-${kind}`, handler, STREAMING)
  }
  await folder(store, GUEST, join(HANDLERS, 'paced', 'handler.ts'), {
    ...STREAMING,
    minWorkers: 1,
    maxWorkers: 1,
  })
  const digest = join(import.meta.dirname, 'models', 'digest', 'handler.ts')
  await folder(store, DIGEST, digest, { minWorkers: 1, maxWorkers: 1, jobQueueSize: 200 })
  await folder(store, SUMS, join(HANDLERS, 'sequences', 'handler.ts'), {
    minWorkers: 2,
    maxWorkers: 2,
    batchSize: 4,
    maxBatchDelay: 1,
    sequenceBatching: true,
    maxNumSequence: 8,
    maxSequenceJobQueueSize: 16,
    sequenceMaxIdleMSec: 60_000,
  })
}

async function folder(store: string, name: string, handler: string, config: object): Promise<void> {
  await mkdir(join(store, name), { recursive: true })
  await writeFile(join(store, name, 'handler.ts'), `export * from ${JSON.stringify(handler)}\n`)
  await writeFile(join(store, name, 'model-config.yaml'), stringify(config))
}

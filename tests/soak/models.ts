import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { packWorkflow } from '../../model-archiver/pack-workflow.ts'
import { packPython } from '../support/python/archive.ts'
import { testPython } from '../support/python/environments.ts'
import { REPOSITORY } from '../support/server-process.ts'

/** Undefined: none was found, and the soak goes without Python workers. */
export const PYTHON = await testPython()

/** Workers that each of the models has that get more and fewer of them. */
export const WORKERS = 2

const HANDLERS = join(REPOSITORY, 'tests', 'support', 'handlers')
const OWN = join(import.meta.dirname, 'models')
const SOURCES = { paced: 'paced', native: 'paced-native', chat: 'paced-chat' } as const
const KINDS = [...(['paced', 'native', 'chat'] as const), ...(PYTHON === undefined ? [] : ['python'])]
const COUNT = { minWorkers: WORKERS, maxWorkers: WORKERS }
const STREAMING = { ...COUNT, asyncCommunication: true, maxConcurrency: 16 }
const ONE = { minWorkers: 1, maxWorkers: 1 }

/** A workflow; its leaf streams. */
export const WORKFLOW = 'relay'
const LEAF = `${WORKFLOW}__paced`
/** Their workers are killed. */
export const VICTIMS: readonly string[] = [...KINDS.map((kind) => `victim-${kind}`), LEAF]
/** Their workers are stopped for a while and scaled away, which no client may notice. */
const STEADY: readonly string[] = KINDS.map((kind) => `steady-${kind}`)
/** What a key may be restricted to. */
export const STEADY_GLOB = 'steady-*'
export const SCALED: readonly string[] = [...VICTIMS, ...STEADY]
/** Registered and unregistered. */
export const GUEST = 'guest'
/** Has two versions, of which one is the default and the other comes and goes. */
export const EDITIONS = 'editions'
export const VERSIONS = ['1.0', '2.0'] as const
export const DIGEST = 'digest'
export const SUMS = 'sums'
/** All that are there from the start to the end. */
export const LOADED: readonly string[] = [...SCALED, EDITIONS, DIGEST, SUMS]

export function isVictim(model: string): boolean {
  return VICTIMS.includes(model)
}

export function isSteady(model: string): boolean {
  return STEADY.includes(model)
}

/** The model whose workers stream the items: of a workflow its leaf. */
export function streamingModel(name: string): string {
  return name === WORKFLOW ? LEAF : name
}

/** The models, or the workflow, of each kind of handler that streams. */
export function modelsOf(kind: string): readonly string[] {
  if (kind === WORKFLOW) return [WORKFLOW]
  const both = [`victim-${kind}`, `steady-${kind}`]
  return kind === 'paced' ? [...both, GUEST, EDITIONS] : both
}

/** Folder or archive of a version of {@link EDITIONS} in the model store. */
export function editionUrl(version: string): string {
  return `${EDITIONS}-${version}`
}

/** Makes the model store. @returns what `--models` loads from it */
export async function makeStore(store: string): Promise<string[]> {
  for (const [kind, source] of Object.entries(SOURCES)) {
    const handler = join(HANDLERS, source, 'handler.ts')
    await folder(store, `victim-${kind}`, handler, STREAMING)
    await folder(store, `steady-${kind}`, handler, STREAMING)
  }
  const paced = join(HANDLERS, 'paced', 'handler.ts')
  await folder(store, 'leaf', paced, STREAMING)
  await folder(store, GUEST, paced, { ...STREAMING, ...ONE })
  for (const version of VERSIONS)
    await folder(store, editionUrl(version), paced, { ...STREAMING, ...ONE }, version)
  await folder(store, DIGEST, join(OWN, 'digest', 'handler.ts'), { ...ONE, jobQueueSize: 200 })
  await folder(store, SUMS, join(HANDLERS, 'sequences', 'handler.ts'), {
    ...COUNT,
    batchSize: 4,
    maxBatchDelay: 1,
    sequenceBatching: true,
    maxNumSequence: 8,
    maxSequenceJobQueueSize: 16,
    sequenceMaxIdleMSec: 60_000,
  })
  const typescript = [...SCALED.filter(isInStore), DIGEST, SUMS, GUEST]
  return [
    ...typescript.map((name) => `${name}=${join(store, name)}`),
    `${EDITIONS}=${join(store, editionUrl(VERSIONS[0]))}`,
    ...(await packPythonModels(store)),
  ]
}

function isInStore(model: string): boolean {
  return model !== LEAF && !model.endsWith('-python')
}

async function packPythonModels(store: string): Promise<string[]> {
  if (PYTHON === undefined) return []
  const handler = await readFile(join(OWN, 'python', 'paced.py'), 'utf8')
  const entries: string[] = []
  for (const name of modelsOf('python'))
    entries.push(`${name}=${await packPython(PYTHON, store, { name, handler, config: stringify(COUNT) })}`)
  return entries
}

/** Packs the workflow: functions that take a plan apart and join it, and a model that streams. */
export async function makeWorkflowStore(store: string): Promise<void> {
  await mkdir(store, { recursive: true })
  const specFile = join(store, `${WORKFLOW}.yaml`)
  const spec = {
    models: { 'timeout-ms': 60_000, paced: { url: 'leaf', 'min-workers': WORKERS, 'max-workers': WORKERS } },
    dag: { receive: ['size', 'manner'], size: ['join'], manner: ['join'], join: ['paced'] },
  }
  await writeFile(specFile, stringify(spec))
  const handler = join(OWN, 'relay', 'functions.ts')
  await packWorkflow({ workflowName: WORKFLOW, specFile, handler, exportPath: store, force: true })
}

async function folder(
  store: string,
  name: string,
  handler: string,
  config: object,
  version?: string,
): Promise<void> {
  await mkdir(join(store, name), { recursive: true })
  await writeFile(join(store, name, 'handler.ts'), `export * from ${JSON.stringify(handler)}\n`)
  await writeFile(join(store, name, 'model-config.yaml'), stringify(config))
  if (version === undefined) return
  await mkdir(join(store, name, 'MAR-INF'))
  const model = {
    modelName: EDITIONS,
    modelVersion: version,
    handler: 'handler.ts',
    configFile: 'model-config.yaml',
  }
  await writeFile(join(store, name, 'MAR-INF', 'MANIFEST.json'), JSON.stringify({ runtime: 'node', model }))
}

import { ServeError } from '../common/errors.ts'
import { Dag } from './workflow-dag.ts'
import { parseYaml } from './yaml.ts'

/** Settings of a node. The specification's keys have dashes (docs/workflows.md). */
export interface NodeSettings {
  /** Default 1. Only shown by describe: a node starts with maxWorkers, as in TorchServe. */
  readonly minWorkers: number
  /** Default 1. */
  readonly maxWorkers: number
  /** Default 1. */
  readonly batchSize: number
  /** Milliseconds, default 50. */
  readonly maxBatchDelay: number
  /** Number of retries of a failed node. Default 1. */
  readonly retryAttempts: number
  /** Milliseconds per try; for a streaming leaf, until its first item. Default 10000. */
  readonly timeoutMs: number
}

export interface NodeSpec extends NodeSettings {
  readonly name: string
  /** Archive of the node's model; undefined: the node is a function of the workflow's handler. */
  readonly url: string | undefined
}

/** A workflow specification (docs/workflows.md). */
export interface WorkflowSpec {
  /** Settings of nodes that set none themselves. */
  readonly defaults: NodeSettings
  /** The nodes by name. */
  readonly nodes: ReadonlyMap<string, NodeSpec>
  readonly dag: Dag
  /** The graph in describe's format: `{pre=[m1], m1=[post]}`. */
  readonly dagText: string
}

const INT_MAX = 2_147_483_647

const KEYS = {
  'min-workers': { setting: 'minWorkers', fallback: 1, min: 0, max: 10_000 },
  'max-workers': { setting: 'maxWorkers', fallback: 1, min: 0, max: 10_000 },
  'batch-size': { setting: 'batchSize', fallback: 1, min: 1, max: INT_MAX },
  'max-batch-delay': { setting: 'maxBatchDelay', fallback: 50, min: 0, max: INT_MAX },
  'retry-attempts': { setting: 'retryAttempts', fallback: 1, min: 0, max: 100 },
  'timeout-ms': { setting: 'timeoutMs', fallback: 10_000, min: 1, max: INT_MAX },
} as const satisfies Record<
  string,
  { setting: keyof NodeSettings; fallback: number; min: number; max: number }
>

/** Rules of model names, of which node names become parts; functions may also start with an underscore. */
const NODE_NAME = /^(?!__)\w[\w.-]{0,99}$/

type YamlMap = ReadonlyMap<unknown, unknown>

/**
 * Reads a workflow specification.
 * @throws ServeError INVALID_WORKFLOW, INVALID_DAG (with TorchServe's messages)
 */
export async function parseWorkflowSpec(text: string): Promise<WorkflowSpec> {
  const root = asMap(await parseText(text), 'the specification')
  const models = root.get('models') ?? new Map<unknown, unknown>()
  const { defaults, urls } = readModels(asMap(models, 'models'))
  const edges = readEdges(asMap(root.get('dag'), 'dag'))
  const dag = new Dag(edges)
  const nodes = dag.order.map((name): [string, NodeSpec] => [
    name,
    urls.get(name) ?? { ...defaults, name, url: undefined },
  ])
  return { defaults, nodes: new Map(nodes), dag, dagText: dagText(edges) }
}

async function parseText(text: string): Promise<unknown> {
  try {
    return await parseYaml(text, { mapAsMap: true })
  } catch (cause) {
    const [line] = (cause as Error).message.split('\n')
    throw new ServeError('INVALID_WORKFLOW', `Failed to parse yaml. ${line}`, { cause })
  }
}

function readModels(models: YamlMap): { defaults: NodeSettings; urls: Map<string, NodeSpec> } {
  const defaults = readSettings(models, 'models')
  const urls = new Map<string, NodeSpec>()
  for (const [key, value] of models) {
    if (Object.hasOwn(KEYS, String(key))) continue
    const name = nodeName(key)
    const model = asMap(value, `models: ${name}`)
    const url = model.get('url')
    if (typeof url !== 'string' || url === '')
      throw invalid(`models: ${name}: url must be a non-empty string`)
    urls.set(name, { ...readSettings(model, `models: ${name}`, defaults), name, url })
  }
  return { defaults, urls }
}

function readSettings(map: YamlMap, where: string, defaults?: NodeSettings): NodeSettings {
  const settings: Partial<Record<keyof NodeSettings, number>> = {}
  for (const [key, { setting, fallback, min, max }] of Object.entries(KEYS)) {
    const value = map.get(key) ?? defaults?.[setting] ?? fallback
    if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
      throw invalid(`${where}: ${key} must be a whole number from ${min} to ${max}`)
    settings[setting] = value
  }
  return settings as NodeSettings
}

function readEdges(dag: YamlMap): [string, string[]][] {
  if (dag.size === 0) throw invalid('dag is empty')
  return [...dag].map(([key, value]) => {
    const name = nodeName(key)
    if (value !== null && !Array.isArray(value)) throw invalid(`dag: ${name} must be a list of nodes`)
    const targets = (value ?? []) as unknown[]
    return [name, targets.filter((target) => !isBlank(target)).map(nodeName)]
  })
}

/** TorchServe accepts lists with only an empty entry. */
function isBlank(value: unknown): boolean {
  return value === null || (typeof value === 'string' && value.trim() === '')
}

function nodeName(value: unknown): string {
  const name = typeof value === 'number' ? String(value) : value
  if (typeof name === 'string' && NODE_NAME.test(name)) return name
  throw invalid(`${JSON.stringify(value)?.slice(0, 120)} is not a valid name of a node`)
}

/** Java's format of a map. */
function dagText(edges: readonly (readonly [string, readonly string[]])[]): string {
  return `{${edges.map(([node, targets]) => `${node}=[${targets.join(', ')}]`).join(', ')}}`
}

function asMap(value: unknown, what: string): YamlMap {
  if (value instanceof Map) return value
  throw invalid(`${what} must be a map`)
}

function invalid(problem: string): ServeError {
  return new ServeError('INVALID_WORKFLOW', `The workflow specification cannot be used: ${problem}.`)
}

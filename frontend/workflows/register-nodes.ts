import { join } from 'node:path'
import type { PreparedWorkflow } from '../../model-archiver/prepare-workflow.ts'
import type { NodeSpec } from '../../model-archiver/workflow-spec.ts'
import { ServeError } from '../../common/errors.ts'
import type { Model, NodeOrigin } from '../models/model.ts'
import type { ModelManager } from '../models/manager.ts'
import type { RegisterRequest } from '../models/operations.ts'
import { WorkflowNode } from './node-run.ts'
import type { RegisterWorkflowRequest } from './operations.ts'

/** Each node is a model. */
export type NodeModels = Pick<ModelManager, 'addNode' | 'removeNode'>

/** Models to load in parallel, as in TorchServe. */
const PARALLEL = 4
/** Function calls that one worker runs at once, so that a call that waits does not block others. */
const MAX_FUNCTION_CALLS = 100

/** What a call sets for each node. Its pin is the workflow's own: nodes have other archives. */
type NodeSettings = Pick<RegisterWorkflowRequest, 'responseTimeout' | 'startupTimeout' | 's3SseKms'>

/** A model to register, and the nodes that it serves. */
interface Registration {
  request: RegisterRequest
  kind: NodeOrigin['kind']
  specs: readonly NodeSpec[]
}

/**
 * Registers the models of all nodes, `<workflow>__<node>` each; all functions of the handler share one model.
 * @throws ServeError WORKFLOW_NOT_REGISTERED with every failure; removes all nodes first
 */
export async function registerNodes(
  name: string,
  prepared: PreparedWorkflow,
  models: NodeModels,
  settings: NodeSettings,
): Promise<Map<string, WorkflowNode>> {
  const nodes = new Map<string, WorkflowNode>()
  const failures: string[] = []
  const waiting = registrations(name, prepared, settings)
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { request, kind, specs } = next
      try {
        const model = await models.addNode(request, { workflow: name, kind })
        for (const spec of specs) nodes.set(spec.name, new WorkflowNode(spec, model, kind === 'functions'))
      } catch (thrown) {
        failures.push(failureText(request.modelName!, ServeError.from(thrown)))
      }
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, work))
  if (failures.length === 0) return nodes
  await removeNodes(nodes.values(), models, 0).catch(() => undefined)
  throw new ServeError(
    'WORKFLOW_NOT_REGISTERED',
    `Workflow ${name} has failed to register. Failures: [${failures.join(', ')}]`,
  )
}

/** Unregisters the models of nodes, in parallel. @throws ServeError CLEANUP_TIMEOUT */
export async function removeNodes(
  nodes: Iterable<WorkflowNode>,
  models: NodeModels,
  graceMs: number,
): Promise<void> {
  const all = new Set<Model>()
  for (const { model } of nodes) all.add(model)
  const results = await Promise.allSettled([...all].map((model) => models.removeNode(model, graceMs)))
  for (const result of results) if (result.status === 'rejected') throw ServeError.from(result.reason)
}

function registrations(
  name: string,
  { spec, folder, functions }: PreparedWorkflow,
  forAll: NodeSettings,
): Registration[] {
  const specs = [...spec.nodes.values()]
  const common = { ...forAll, synchronous: true }
  const list = specs
    .filter(({ url }) => url !== undefined)
    .map((node): Registration => {
      const { batchSize, maxBatchDelay, maxWorkers: initialWorkers } = node
      const settings = { batchSize, maxBatchDelay, initialWorkers }
      const request = { ...common, ...settings, url: node.url!, modelName: `${name}__${node.name}` }
      return { request, kind: 'model', specs: [node] }
    })
  if (functions === undefined) return list
  const single = { ...common, url: folder, batchSize: 1, maxBatchDelay: 0, initialWorkers: 1 }
  const called = specs.filter(({ url }) => url === undefined)
  if (functions.kind === 'module') {
    // No node can have this name, so it collides with none.
    const own = { modelName: `${name}__(functions)`, runtime: 'node', maxConcurrency: MAX_FUNCTION_CALLS }
    const request = { ...single, ...own, handler: functions.file }
    return [...list, { request, kind: 'functions', specs: called }]
  }
  const python = called.map((node): Registration => {
    const handler = `${join(folder, functions.file)}:${node.name}`
    const request = { ...single, modelName: `${name}__${node.name}`, runtime: 'python', handler }
    return { request, kind: 'functions', specs: [node] }
  })
  return [...list, ...python]
}

/** TorchServe's format: a worker that does not start is reported by its model's message alone. */
function failureText(model: string, { code, message }: ServeError): string {
  if (code === 'WORKER_START_FAILED' || code === 'OUT_OF_MEMORY') return message
  return `Workflow Node ${model} failed to register. Details: ${message}`
}

import type { Dag } from '../../model-archiver/workflow-dag.ts'
import {
  CAPACITY,
  CollectingRun,
  LeafRun,
  type NodeRun,
  type NodeRunOwner,
  type WorkflowNode,
} from './node-run.ts'
import { exactJson, tryParseJson } from '../../common/exact-json.ts'
import { ServeError } from '../../common/errors.ts'
import type { Job } from '../jobs/job.ts'
import type { AbandonReason, JobHolder } from '../jobs/scheduler.ts'
import { inputBytes, type JobRequest } from '../jobs/job-request.ts'
import type { InputPart } from '../../common/handler-methods.ts'

/** What every request of a workflow shares. */
export interface Plan {
  readonly dag: Dag
  readonly nodes: ReadonlyMap<string, WorkflowNode>
  /** Maximum bytes of one node's output: max_response_size. */
  readonly maxOutputBytes: number
  /** Writes one line to the log. */
  readonly warn: (message: string) => void
}

/**
 * The answer of a workflow with several leaves: a JSON object with each leaf's output under its name. Output
 * that is not JSON becomes a string. TorchServe accepts only JSON objects.
 */
function joinLeaves(leaves: readonly string[], outputs: ReadonlyMap<string, Uint8Array>): Buffer {
  const fields = leaves.map((leaf) => [leaf, jsonOrText(outputs.get(leaf)!)])
  return Buffer.from(`${exactJson(Object.fromEntries(fields), 2)}\n`)
}

function jsonOrText(output: Uint8Array): unknown {
  const value = tryParseJson(output)
  return value === undefined ? Buffer.from(output).toString() : value
}

/**
 * One request running through a workflow. A node starts as soon as all its predecessors have answered. Memory
 * holds at most one output per node, each within max_response_size.
 */
export class Execution implements JobHolder, NodeRunOwner {
  readonly #plan: Plan
  readonly #client: Job
  readonly #request: JobRequest
  readonly #running = new Set<NodeRun>()
  /** Inputs of nodes that wait for more predecessors. */
  readonly #inputs = new Map<string, InputPart[]>()
  /** Outputs of leaves that wait for other leaves. */
  readonly #outputs = new Map<string, Uint8Array>()
  #streamingLeaf: LeafRun | undefined

  constructor(plan: Plan, client: Job) {
    this.#plan = plan
    this.#client = client
    this.#request = client.request
  }

  /** `parts`: the client's input. */
  start(parts: InputPart[]): void {
    if (!this.#keeps(inputBytes({ parts, headers: '' }))) return
    this.#run(this.#plan.dag.start, parts)
  }

  finished(run: NodeRun, output: Uint8Array | undefined): void {
    this.#running.delete(run)
    if (output === undefined || this.#client.ended) return
    if (!this.#keeps(output.byteLength)) return
    const { name } = run.node
    const successors = this.#plan.dag.successors(name)
    if (successors.length === 0) this.#leafFinished(name, output)
    for (const successor of successors) this.#give(name, output, successor)
  }

  retried(run: NodeRun, error: ServeError): void {
    this.#plan.warn(`node ${run.node.name} failed at try ${run.tries} and is retried: ${error.message}`)
  }

  failed(run: NodeRun, error: ServeError): void {
    this.#running.delete(run)
    if (this.#client.ended) return
    this.#plan.warn(`node ${run.node.name} failed at try ${run.tries}: ${error.message}`)
    this.#fail(nodeFailure(run, error))
  }

  /** The client left or timed out: stops every running node and starts no other. */
  abandon(_client: Job, reason: AbandonReason): void {
    for (const run of this.#running) run.cancel(reason)
    this.#running.clear()
  }

  drained(): void {
    this.#streamingLeaf?.drained()
  }

  #run(name: string, parts: InputPart[]): void {
    const { dag, maxOutputBytes } = this.#plan
    const node = this.#plan.nodes.get(name)!
    const onlyLeaf = dag.leaves.length === 1 && dag.successors(name).length === 0
    let run: NodeRun
    if (onlyLeaf) {
      run = this.#streamingLeaf = new LeafRun(node, this.#request, parts, this, this.#client)
    } else {
      run = new CollectingRun(node, this.#request, parts, this, maxOutputBytes)
    }
    this.#running.add(run)
    run.start()
  }

  /** The output of a single predecessor is named `body`; several outputs have their nodes' names. */
  #give(from: string, data: Uint8Array, to: string): void {
    const predecessors = this.#plan.dag.predecessors(to)
    const parts = this.#inputs.get(to) ?? []
    parts.push({ name: predecessors.length === 1 ? 'body' : from, data })
    this.#inputs.set(to, parts)
    if (parts.length < predecessors.length || this.#client.ended) return
    this.#inputs.delete(to)
    parts.sort((a, b) => predecessors.indexOf(a.name) - predecessors.indexOf(b.name))
    this.#run(to, parts)
  }

  #leafFinished(name: string, output: Uint8Array): void {
    const { dag, maxOutputBytes } = this.#plan
    this.#outputs.set(name, output)
    if (this.#outputs.size < dag.leaves.length) return
    const body = joinLeaves(dag.leaves, this.#outputs)
    if (body.byteLength <= maxOutputBytes)
      this.#client.respond({ body, status: 200, contentType: 'application/json', headers: {} })
    else this.#fail(tooLarge(maxOutputBytes))
  }

  /** Counts bytes that nodes get, until the client's request ends; without room for them it fails. */
  #keeps(bytes: number): boolean {
    try {
      this.#client.hold(bytes)
      return true
    } catch (thrown) {
      this.#fail(ServeError.from(thrown))
      return false
    }
  }

  #fail(error: ServeError): void {
    this.#client.fail(error)
    this.abandon(this.#client, 'failed')
  }
}

/** TorchServe's message; the log has the reason. */
function nodeFailure({ node }: NodeRun, error: ServeError): ServeError {
  if (CAPACITY.has(error.code) || error.code === 'CLIENT_STALLED') return error
  return new ServeError('WORKFLOW_NODE_FAILED', `Error executing ${node.name}`, {
    cause: error,
    detail: error.detail,
  })
}

function tooLarge(maxBytes: number): ServeError {
  return new ServeError(
    'RESPONSE_TOO_LARGE',
    `The outputs of all leaves must have at most ${maxBytes} bytes (max_response_size)`,
  )
}

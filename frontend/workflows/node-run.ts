import { type ErrorCode, ServeError } from '../../common/errors.ts'
import { type AbandonReason, type JobRequest, type InputPart, Job } from '../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../jobs/reply-sink.ts'
import type { Limited, TimeLimit } from '../jobs/time-limit.ts'
import type { WorkflowNode } from './node.ts'

/** Who runs the node. Exactly one of the two is called, unless the run is cancelled. */
export interface NodeRunOwner {
  /** The node has answered; `output` is undefined when the answer went to the client already. */
  finished(run: NodeRun, output: Uint8Array | undefined): void
  /** The last try has failed, or none can follow. */
  failed(run: NodeRun, error: ServeError): void
  /** A try has failed and the next one begins. */
  retried(run: NodeRun, error: ServeError): void
}

/** These say that the server is busy or leaves, not that a node is wrong: the client may come again. */
export const CAPACITY: ReadonlySet<ErrorCode> = new Set([
  'NO_WORKER',
  'QUEUE_FULL',
  'QUEUE_TIMEOUT',
  'SHUTTING_DOWN',
])

/** Another try would fail in the same way. */
const FINAL: ReadonlySet<ErrorCode> = new Set(['PAYLOAD_TOO_LARGE', 'RESPONSE_TOO_LARGE'])

const NO_PARTS: InputPart[] = []

/**
 * One node at work for one request of a workflow: a job for the node's model, and after a failure another one, as often as the
 * node allows. What becomes of the answer is the subclasses' business.
 */
export abstract class NodeRun implements ReplySink, Limited {
  readonly node: WorkflowNode
  tries = 0
  limit: TimeLimit | undefined
  limitEnd = 0
  limitBefore: Limited | undefined
  limitAfter: Limited | undefined
  protected readonly owner: NodeRunOwner
  readonly #request: JobRequest
  #parts: InputPart[]
  #job: Job | undefined

  /** `request`: the client's, whose headers and deadline every node gets. */
  constructor(node: WorkflowNode, request: JobRequest, parts: InputPart[], owner: NodeRunOwner) {
    this.node = node
    this.owner = owner
    this.#request = request
    this.#parts = parts
  }

  start(): void {
    const { node } = this
    const { requestId, headers, deadline } = this.#request
    this.tries += 1
    this.#job = new Job(
      {
        requestId: nodeRequestId(requestId, node.name, this.tries),
        modelName: node.model.name,
        method: 'handle',
        headers: headers + node.extraHeaders,
        parts: this.#parts,
        deadline,
      },
      this,
    )
    node.limit.begin(this)
    try {
      node.model.submit(this.#job)
    } catch (thrown) {
      this.fail(ServeError.from(thrown))
    }
  }

  /** Nobody waits for the node any more: its job stops, and no other follows. */
  cancel(reason: AbandonReason): void {
    this.limit?.end(this)
    this.#job?.cancel(reason)
  }

  /** The client's connection has room again. */
  drained(): void {
    this.#job?.drained()
  }

  abstract whole(head: ReplyHead, body: Uint8Array): void
  abstract open(head: ReplyHead): void
  abstract write(chunk: Uint8Array, from: number, to: number): boolean
  abstract close(): void

  /** Whether the client has not seen anything of this node. */
  protected abstract get repeatable(): boolean

  fail(error: ServeError): void {
    this.limit?.end(this)
    if (!this.repeatable || this.tries > this.node.retries || isFinal(error)) {
      this.owner.failed(this, error)
      return
    }
    this.owner.retried(this, error)
    this.start()
  }

  expired({ code, what, key, ms }: TimeLimit): void {
    this.#job?.cancel('timeout')
    this.fail(new ServeError(code, `Timed out after ${ms / 1000} s: ${what} (${key})`))
  }

  /** No other try can follow: the input is let go, for a stream may stay open for long. */
  protected letGo(): void {
    this.#parts = NO_PARTS
  }

  /** The node's answer cannot be used: its work is stopped. */
  protected refuse(error: ServeError): void {
    this.#job?.abort(error, 'failed')
  }
}

/** The client's id is in those of all jobs of its request, and no two of them are the same. */
function nodeRequestId(requestId: string, node: string, tries: number): string {
  return tries === 1 ? `${requestId}/${node}` : `${requestId}/${node}#${tries}`
}

/** A handler that rejects a request as the client's mistake rejects it again. */
function isFinal({ code, status }: ServeError): boolean {
  if (CAPACITY.has(code) || FINAL.has(code)) return true
  return code === 'HANDLER_REJECTED' && status !== undefined && status < 500
}

import { type ErrorCode, ServeError } from '../../common/errors.ts'
import { type AbandonReason, Job } from '../jobs/job.ts'
import type { JobRequest } from '../jobs/job-request.ts'
import type { InputPart } from '../../common/handler-methods.ts'
import type { ReplyHead, ReplySink } from '../jobs/reply-sink.ts'
import type { Limited, TimeLimit } from '../jobs/time-limit.ts'
import type { WorkflowNode } from './node.ts'

/** Owner of a node run. Exactly one of `finished` and `failed` is called, unless the run is cancelled. */
export interface NodeRunOwner {
  /** `output` is undefined when the answer already went to the client. */
  finished(run: NodeRun, output: Uint8Array | undefined): void
  /** The last try failed, or the failure is not retryable. */
  failed(run: NodeRun, error: ServeError): void
  /** A try failed and the next one starts. */
  retried(run: NodeRun, error: ServeError): void
}

/** The server is busy or stopping, or the node's model has no worker to serve: the client gets this error. */
export const CAPACITY: ReadonlySet<ErrorCode> = new Set([
  'NO_WORKER',
  'MODEL_FAILED',
  'QUEUE_FULL',
  'QUEUE_TIMEOUT',
  'SHUTTING_DOWN',
])

/** A retry would fail the same way. */
const FINAL: ReadonlySet<ErrorCode> = new Set(['PAYLOAD_TOO_LARGE', 'RESPONSE_TOO_LARGE'])

const NO_PARTS: InputPart[] = []

/**
 * One node executing for one request of a workflow: a job for the node's model, and after a failure another
 * one, up to the node's retries. Subclasses handle the answer.
 */
export abstract class NodeRun implements ReplySink, Limited {
  readonly node: WorkflowNode
  tries = 0
  protected readonly owner: NodeRunOwner
  readonly #request: JobRequest
  #parts: InputPart[]
  #job: Job | undefined

  /** `request`: the client's; every node gets its headers and deadline. */
  constructor(node: WorkflowNode, request: JobRequest, parts: InputPart[], owner: NodeRunOwner) {
    this.node = node
    this.owner = owner
    this.#request = request
    this.#parts = parts
  }

  start(): void {
    const { node } = this
    const { requestId, sender, headers, credentials, deadline } = this.#request
    this.tries += 1
    this.#job = new Job(
      {
        requestId: nodeRequestId(requestId, node.name, this.tries),
        dialect: 'workflow',
        sender,
        modelName: node.model.name,
        method: 'handle',
        headers: headers + node.extraHeaders,
        credentials,
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

  /** Nobody waits for the node: cancels its job, without retry. */
  cancel(reason: AbandonReason): void {
    this.node.limit.end(this)
    this.#job?.cancel(reason)
  }

  /** The client's connection can take more. */
  drained(): void {
    this.#job?.drained()
  }

  abstract whole(head: ReplyHead, body: Uint8Array): void
  abstract open(head: ReplyHead): void
  abstract write(chunk: Uint8Array, from: number, to: number): boolean
  abstract close(): void

  /** Whether the client has seen nothing of this node's answer. */
  protected abstract get repeatable(): boolean

  fail(error: ServeError): void {
    this.node.limit.end(this)
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

  /** No retry follows: releases the input, because a stream may stay open for long. */
  protected letGo(): void {
    this.#parts = NO_PARTS
  }

  /** The node's answer is invalid: cancels its work. */
  protected refuse(error: ServeError): void {
    this.#job?.abort(error, 'failed')
  }
}

/** Unique id of a node's job, which contains the client's id. */
function nodeRequestId(requestId: string, node: string, tries: number): string {
  return tries === 1 ? `${requestId}/${node}` : `${requestId}/${node}#${tries}`
}

/** A request that the handler rejects as the client's mistake would be rejected again. */
function isFinal({ code, status }: ServeError): boolean {
  if (CAPACITY.has(code) || FINAL.has(code)) return true
  return code === 'HANDLER_REJECTED' && status !== undefined && status < 500
}

import { headerLine } from '../../common/headers.ts'
import type { NodeSpec } from '../../model-archiver/workflow-spec.ts'
import { FUNCTION_HEADER } from '../../model-archiver/prepare-workflow.ts'
import type { Model } from '../models/model.ts'
import { type Limited, TimeLimit } from '../jobs/time-limit.ts'
import { type ErrorCode, ServeError } from '../../common/errors.ts'
import { Job } from '../jobs/job.ts'
import type { AbandonReason } from '../jobs/scheduler.ts'
import type { JobRequest } from '../jobs/job-request.ts'
import type { InputPart } from '../../common/handler-methods.ts'
import type { ReplyHead, ReplySink } from '../jobs/reply-sink.ts'
import { ByteCollector } from '../../common/byte-flow.ts'

/** One node of a workflow: its model, and its retries. */
export class WorkflowNode {
  readonly name: string
  readonly model: Model
  /** Number of retries. */
  readonly retries: number
  /** Time limit of one try; one timer chain serves all requests. */
  readonly limit: TimeLimit
  /** Added to the request's headers, so that the worker finds the function. */
  readonly extraHeaders: string

  /** `shared`: the model serves several functions and needs the name of one. */
  constructor(spec: NodeSpec, model: Model, shared: boolean) {
    this.name = spec.name
    this.model = model
    this.retries = spec.retryAttempts
    this.limit = new TimeLimit(spec.timeoutMs, 'RESPONSE_TIMEOUT', 'the node did not answer', 'timeout-ms')
    // The last value of a header wins, so clients cannot select another function.
    this.extraHeaders = shared ? headerLine(FUNCTION_HEADER, spec.name) : ''
  }
}

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

/**
 * A node whose complete answer is needed, as input of other nodes or beside other leaves. Joins the items of
 * a stream. An error status counts as a failure: its body is not valid input.
 */
export class CollectingRun extends NodeRun {
  readonly #maxBytes: number
  #items: ByteCollector | undefined

  constructor(
    node: WorkflowNode,
    request: JobRequest,
    parts: InputPart[],
    owner: NodeRunOwner,
    maxBytes: number,
  ) {
    super(node, request, parts, owner)
    this.#maxBytes = maxBytes
  }

  protected override get repeatable(): boolean {
    return true
  }

  override whole(head: ReplyHead, body: Uint8Array): void {
    if (isError(head)) this.fail(rejected(head))
    else if (body.byteLength > this.#maxBytes) this.fail(this.#tooLarge())
    else this.#finish(Buffer.from(body)) // a copy: the body is a slice of its socket's buffer
  }

  override open(head: ReplyHead): void {
    if (isError(head)) this.refuse(rejected(head))
    else this.#items = new ByteCollector(this.#maxBytes)
  }

  override write(chunk: Uint8Array, from: number, to: number): boolean {
    if (this.#items?.add(chunk.subarray(from, to)) === false) {
      this.#items = undefined
      this.refuse(this.#tooLarge())
    }
    return true
  }

  override close(): void {
    this.#finish(this.#items!.bytes())
  }

  override fail(error: ServeError): void {
    this.#items = undefined
    super.fail(error)
  }

  #finish(output: Uint8Array): void {
    this.node.limit.end(this)
    this.owner.finished(this, output)
  }

  #tooLarge(): ServeError {
    const message = `The output of node ${this.node.name} must have at most ${this.#maxBytes} bytes (max_response_size)`
    return new ServeError('RESPONSE_TOO_LARGE', message)
  }
}

function isError({ status }: ReplyHead): boolean {
  return status >= 400
}

function rejected({ status }: ReplyHead): ServeError {
  return new ServeError('HANDLER_REJECTED', `The handler answered with status ${status}`, { status })
}

/**
 * The only leaf of a workflow: its answer goes straight to the client, item by item, and the client's
 * connection applies backpressure to the node. After the first item there is no retry.
 */
export class LeafRun extends NodeRun {
  readonly #client: Job
  /** The head of a stream, until its first item. */
  #head: ReplyHead | undefined
  #begun = false

  constructor(node: WorkflowNode, request: JobRequest, parts: InputPart[], owner: NodeRunOwner, client: Job) {
    super(node, request, parts, owner)
    this.#client = client
  }

  protected override get repeatable(): boolean {
    return !this.#begun
  }

  /** TorchServe labels every answer of a workflow as JSON; here only one without a content type. */
  override whole(head: ReplyHead, body: Uint8Array): void {
    this.node.limit.end(this)
    this.#begun = true
    this.#client.respond({ ...head, contentType: head.contentType ?? 'application/json', body })
    this.owner.finished(this, undefined)
  }

  override open(head: ReplyHead): void {
    this.node.limit.end(this)
    this.#begun = true
    this.#head = head
    this.letGo()
  }

  override write(chunk: Uint8Array, from: number, to: number): boolean {
    const head = this.#head
    if (head === undefined) return this.#client.item(chunk, from, to)
    this.#head = undefined
    return this.#client.respond({ ...head, body: chunk.subarray(from, to), more: true })
  }

  override close(): void {
    this.#client.finish()
    this.owner.finished(this, undefined)
  }

  override fail(error: ServeError): void {
    this.#head = undefined
    super.fail(error)
  }
}

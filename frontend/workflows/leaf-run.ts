import type { ServeError } from '../../common/errors.ts'
import type { Job } from '../jobs/job.ts'
import type { JobRequest } from '../jobs/job-request.ts'
import type { InputPart } from '../../common/handler-methods.ts'
import type { ReplyHead } from '../jobs/reply-sink.ts'
import type { WorkflowNode } from './node.ts'
import { NodeRun, type NodeRunOwner } from './node-run.ts'

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

import { ServeError } from '../../common/errors.ts'
import { ByteCollector } from '../../common/byte-flow.ts'
import type { JobRequest } from '../jobs/job-request.ts'
import type { InputPart } from '../../common/handler-methods.ts'
import type { ReplyHead } from '../jobs/reply-sink.ts'
import type { WorkflowNode } from './node.ts'
import { NodeRun, type NodeRunOwner } from './node-run.ts'

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

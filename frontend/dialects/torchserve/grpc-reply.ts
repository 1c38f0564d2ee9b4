import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js'
import { logFailure, type GrpcLog } from '../../edge/grpc/call-error.ts'
import { replyMetadata } from '../../edge/grpc/reply-metadata.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { JoinedReply } from '../joined-reply.ts'
import { inferenceError } from './grpc-errors.ts'

/** A unary call, and how the handler's answer becomes its message. */
interface UnaryCall<Message> {
  /** For the log. */
  readonly rpc: string
  readonly call: Pick<ServerUnaryCall<unknown, Message>, 'sendMetadata'>
  readonly respond: sendUnaryData<Message>
  /** @throws ServeError INVALID_OUTPUT, HANDLER_REJECTED */
  readonly encode: (body: Uint8Array, head: ReplyHead) => Message
}

/** Sends one message. The items of a streaming handler are joined, up to `maxBytes`. */
export function unaryCallReply<Message>(
  { rpc, call, respond, encode }: UnaryCall<Message>,
  maxBytes: number,
  log: GrpcLog,
): JoinedReply {
  return new JoinedReply(
    {
      answer: (head, body) => {
        const message = encode(body, head)
        const metadata = replyMetadata(head)
        if (metadata !== undefined) call.sendMetadata(metadata)
        respond(null, message)
      },
      fail: (error) => {
        logFailure(log, rpc, error)
        respond(inferenceError(error))
      },
    },
    maxBytes,
    (limit) => `The streamed answer is larger than ${limit}; use StreamPredictions`,
  )
}

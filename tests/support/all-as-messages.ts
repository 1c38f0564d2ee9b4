import type { FrontendEvents } from '../../protocol/channel.ts'
import type { FromWorker } from '../../protocol/messages.ts'

/**
 * The events of a frontend's channel for a test that wants items as messages too, in order with the others.
 */
export function allAsMessages(
  onMessage: (message: FromWorker) => void,
  onClose: FrontendEvents['onClose'],
): FrontendEvents {
  return {
    onMessage,
    onItem: (id, chunk, from, to) => {
      onMessage({ type: 'response', id, body: Buffer.from(chunk.subarray(from, to)), ts_stream_next: 'true' })
    },
    onClose,
  }
}

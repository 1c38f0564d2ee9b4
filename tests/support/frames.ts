import type { Socket } from 'node:net'
import { encode } from '../../protocol/codec.ts'
import type { FromWorker, ToWorker } from '../../protocol/messages.ts'
import { Outbox } from '../../protocol/outbox.ts'

/** The frame of a message, with its header. */
export function frameOf(message: FromWorker | ToWorker): Buffer {
  const pieces: Buffer[] = []
  const socket = {
    writableLength: 0,
    write: (piece: Buffer) => pieces.push(Buffer.from(piece)),
    cork: () => undefined,
    uncork: () => undefined,
  }
  const outbox = new Outbox()
  encode(outbox, message)
  outbox.flush(socket as unknown as Socket)
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
}

import { once } from 'node:events'
import { connect, constants } from 'node:http2'
import { COUNT } from '../ceilings/workload.ts'
import { streamCall } from '../grpc-calls.ts'
import type { Target } from '../targets/target.ts'
import { post } from '../wire.ts'

/** A stream whose first bytes have arrived. */
export interface OpenStream {
  leave(): void
}

/** Opens a stream. Without `onData`, nothing more is read; it is called for the first and all later bytes. */
export type Opener = (target: Target, body: string, onData?: () => void) => Promise<OpenStream>

export const openHttp: Opener = async (target, body, onData) => {
  const socket = post(`${target.restOrigin!}/predictions/${COUNT}`, body)
  socket.on('error', () => undefined)
  if (onData !== undefined) socket.on('data', onData)
  const [first] = (await once(socket, 'data')) as [Buffer]
  if (onData === undefined) socket.pause()
  if (!first.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(`No stream: ${first.toString()}`)
  return { leave: () => socket.destroy() }
}

/** Each stream has its own connection; cancels like grpc clients do. */
export const openGrpc: Opener = async (target, body, onData) => {
  const call = streamCall(COUNT, body)
  const session = connect(target.grpcOrigin!)
  session.on('error', () => undefined)
  const headers = {
    ':method': 'POST',
    ':path': call.path,
    'content-type': 'application/grpc',
    te: 'trailers',
  }
  const stream = session.request(headers)
  stream.on('error', () => undefined)
  stream.on('close', () => {
    session.close()
  })
  stream.end(call.message)
  if (onData !== undefined) stream.on('data', onData)
  await once(stream, 'data')
  if (onData === undefined) stream.pause()
  return {
    leave: () => {
      stream.close(constants.NGHTTP2_CANCEL)
    },
  }
}

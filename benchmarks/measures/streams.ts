import { once } from 'node:events'
import { connect, constants } from 'node:http2'
import { COUNT } from '../ceilings/workload.ts'
import { streamCall } from '../grpc-calls.ts'
import type { Target } from '../targets/target.ts'
import { post } from '../wire.ts'

/** A stream whose first bytes have arrived; nothing more is read. */
export interface OpenStream {
  leave(): void
}

export type Opener = (target: Target, body: string) => Promise<OpenStream>

export const openHttp: Opener = async (target, body) => {
  const socket = post(`${target.restOrigin!}/predictions/${COUNT}`, body)
  socket.on('error', () => undefined)
  const [first] = (await once(socket, 'data')) as [Buffer]
  socket.pause()
  if (!first.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(`No stream: ${first.toString()}`)
  return { leave: () => socket.destroy() }
}

/** Each stream has its own connection; cancels like grpc clients do. */
export const openGrpc: Opener = async (target, body) => {
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
  await once(stream, 'data')
  stream.pause()
  return {
    leave: () => {
      stream.close(constants.NGHTTP2_CANCEL)
    },
  }
}

import { once } from 'node:events'
import { Socket } from 'node:net'
import type { Context } from '../../../../backend-worker/handler.ts'
import { sendIntermediatePredictResponse } from '../../../../backend-worker/intermediate.ts'
import { frameOf } from '../../frames.ts'

interface Wish {
  /** `fair`: awaits each send; `hasty`: awaits none; `raw`: writes to the worker's socket by itself. */
  way: 'fair' | 'hasty' | 'raw'
  n: number
  size: number
}

/** How often it was called, which is the number of the request on the wire. */
let calls = 0

/** Streams `n` items of `size` bytes in the way that the request asks for. */
export async function handle(data: { body: Wish }[], context: Context): Promise<string[]> {
  const id = ++calls
  const { way, n, size } = data[0]!.body
  const item = Buffer.alloc(size, 'x')
  const send = (): Promise<void> =>
    sendIntermediatePredictResponse([item], context.requestIds, 'Intermediate', 200, context)
  await send()
  if (way === 'raw') await flood(id, n, item)
  for (let k = 1; way !== 'raw' && k < n; k += 1) {
    const sent = send()
    if (way === 'fair') await sent
  }
  return ['last']
}

/** Only the kernel holds it back: items without credit, on the socket that the worker library uses. */
async function flood(id: number, n: number, item: Buffer): Promise<void> {
  const handles = (process as unknown as { _getActiveHandles(): unknown[] })._getActiveHandles()
  // stdout and stderr are pipes to the frontend too, which have no address.
  const sockets = handles.filter((each): each is Socket => each instanceof Socket && !isStandard(each))
  const socket = sockets[0]!
  const frame = frameOf({ type: 'response', id, body: item, ts_stream_next: 'true' })
  for (let k = 1; k < n; k += 1) if (!socket.write(frame)) await once(socket, 'drain')
}

function isStandard(socket: unknown): boolean {
  return [process.stdin, process.stdout, process.stderr].includes(socket as never)
}

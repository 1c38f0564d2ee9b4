import { once } from 'node:events'
import { Socket } from 'node:net'
import { frameOf } from '../../frames.ts'
import type { FromWorker } from '../../../../protocol/messages.ts'

interface Wish {
  type: 'log' | 'metric' | 'failure'
  n: number
  size: number
}

/** How often it was called, which is the number of the request on the wire. */
let calls = 0

/** Writes `n` frames with texts of `size` characters to the worker's socket, past the worker's library. */
export async function handle(data: { body: Wish }[]): Promise<string[]> {
  const id = ++calls
  const { type, n, size } = data[0]!.body
  const socket = workerSocket()
  for (let k = 0; k < n; k += 1)
    if (!socket.write(frameOf(messageOf(type, id, `${k} ${'x\n'.repeat(size / 2)}`))))
      await once(socket, 'drain')
  return ['last']
}

function messageOf(type: Wish['type'], id: number, text: string): FromWorker {
  if (type === 'log') return { type, level: 'info', message: text }
  if (type === 'failure') return { type, id, error: { code: 'INTERNAL', message: 'm', detail: text } }
  const dimensions = { ModelName: text, Level: text }
  return { type, name: 'HandlerTime', kind: 'gauge', unit: 'ms', dimensions, values: [1], requestIds: ['r'] }
}

/** stdout and stderr are pipes to the frontend too. */
function workerSocket(): Socket {
  const handles = (process as unknown as { _getActiveHandles(): unknown[] })._getActiveHandles()
  const standard = [process.stdin, process.stdout, process.stderr] as unknown[]
  return handles.find((each): each is Socket => each instanceof Socket && !standard.includes(each))!
}

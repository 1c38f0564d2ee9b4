import { once } from 'node:events'
import type { Socket } from 'node:net'
import { IDLE_BODY } from '../ceilings/workload.ts'
import { post } from '../wire.ts'

/** A stream whose first item has arrived. */
export async function idleStream(url: string): Promise<Socket> {
  const socket = post(url, IDLE_BODY)
  let text = ''
  while (!text.includes('\n\r\n', text.indexOf('\r\n\r\n') + 4)) {
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    text += chunk.toString('latin1')
  }
  if (!text.startsWith('HTTP/1.1 200')) throw new Error(`No stream: ${text.slice(0, 300)}`)
  return socket
}

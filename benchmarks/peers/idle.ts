import { once } from 'node:events'
import type { Socket } from 'node:net'
import { within } from '../../common/timer.ts'
import { steadyResidentBytes } from '../measures/resident.ts'
import type { Target } from '../targets/target.ts'
import { post, postAndRead } from '../wire.ts'
import { timedText, type Peer } from './peer.ts'

const WARM_UP_REQUESTS = 1_000
const ONE_DAY = 86_400_000
const OPEN_LIMIT_MS = 10_000
/** A server that hangs must not hang the benchmark. */
const ANSWER_LIMIT_MS = 10_000

export interface IdleRow {
  target: string
  /** Growth of the resident memory of all processes per stream, in kilobytes. */
  kilobytes: number
  /** Of the warmed-up server before the streams, in megabytes. */
  baseMegabytes: number
  streams: number
}

/** Starts a fresh server, opens streams that send one item and then wait, and reads its memory. */
export async function measureIdle(peer: Peer, streams: number): Promise<IdleRow> {
  const target = await peer.start(['idle'], 1)
  const sockets: Socket[] = []
  try {
    const { path, headers, body } = peer.rest('idle', timedText({ n: 1, gap: 0 }))
    for (let i = 0; i < WARM_UP_REQUESTS; i++) {
      let isAnswered = false
      const answer = postAndRead(target.restOrigin! + path, body, headers)
      await within(
        ANSWER_LIMIT_MS,
        answer.then(() => (isAnswered = true)),
      )
      if (!isAnswered) throw new Error(`Request ${i + 1} was not answered within ${ANSWER_LIMIT_MS / 1000} s`)
    }
    const before = await steadyResidentBytes(target)
    for (let i = 0; i < streams; i++) sockets.push(await open(peer, target, i))
    const growth = (await steadyResidentBytes(target)) - before
    return {
      target: target.name,
      kilobytes: growth / streams / 1024,
      baseMegabytes: before / 1024 / 1024,
      streams,
    }
  } finally {
    for (const socket of sockets) socket.destroy()
    await target.stop()
  }
}

/** A stream whose first item has arrived. */
async function open(peer: Peer, target: Target, number: number): Promise<Socket> {
  const { path, headers, body } = peer.rest('idle', timedText({ n: 2, gap: ONE_DAY }))
  const socket = post(target.restOrigin! + path, body, headers)
  const signal = AbortSignal.timeout(OPEN_LIMIT_MS)
  let text = ''
  try {
    while (!/1 \d+\.\d{3} {40}/.test(text)) {
      const [part] = (await once(socket, 'data', { signal })) as [Buffer]
      text += part.toString('latin1')
    }
  } catch (error) {
    socket.destroy()
    throw new Error(`Stream ${number + 1} did not begin: ${text.slice(0, 200)}`, { cause: error })
  }
  socket.on('error', () => undefined)
  return socket
}

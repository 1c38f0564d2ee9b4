import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { median } from '../statistics.ts'
import { isWhole, requestBytes } from '../wire.ts'
import type { PeerOptions } from './options.ts'
import { timedText, type TimedRequest } from './peer.ts'
import type { Running } from './running.ts'
import { spread, type Spread } from './spread.ts'

/** Milliseconds. */
const GAP = 20
const GAP_ITEMS = 25
/** An item of the timed stream: its number, and how many milliseconds the handler had run. */
const ITEM = /(\d+) (\d+\.\d{3}) {40}/g

/** One client on a server without other load. */
export interface TimesRow {
  target: string
  /** Milliseconds to the first chunk beyond the handler's own; the median of each round. */
  added: Spread
  /** Share of reads with more than one item, of streams with one item every 20 ms. */
  joined: number
  /** Milliseconds that an item arrives after the handler made it, later than the first one; the worst. */
  latest: number
  /** Number of reads with items. */
  reads: number
}

/** One read of the stream. */
interface Read {
  /** Milliseconds since the request. */
  at: number
  items: { made: number }[]
}

/** Asks all servers in turns, one request at a time on one connection each. */
export async function measureTimes(servers: readonly Running[], options: PeerOptions): Promise<TimesRow[]> {
  const added: number[][] = servers.map(() => [])
  const gaps: Read[][][] = servers.map(() => [])
  for (let round = 0; round < options.rounds; round++) {
    const order = [...servers.keys()]
    if (round % 2 === 1) order.reverse()
    for (const i of order) {
      added[i]!.push(await firstChunk(servers[i]!, options.samples))
      gaps[i]!.push(await reads(servers[i]!, { n: GAP_ITEMS, gap: GAP }))
    }
  }
  return servers.map(({ name }, i) => ({
    target: name,
    added: spread(added[i]!),
    ...joined(gaps[i]!),
  }))
}

/** Median of some requests; the first few warm up. */
async function firstChunk(server: Running, samples: number): Promise<number> {
  const socket = await connected(server)
  const milliseconds: number[] = []
  for (let i = -5; i < samples; i++) {
    const [first] = await readsOn(socket, server, { n: 2, gap: 1 })
    if (i >= 0) milliseconds.push(first!.at - first!.items[0]!.made)
  }
  socket.destroy()
  return median(milliseconds)
}

async function reads(server: Running, request: TimedRequest): Promise<Read[]> {
  const socket = await connected(server)
  const result = await readsOn(socket, server, request)
  socket.destroy()
  return result
}

async function connected({ target }: Running): Promise<Socket> {
  const { hostname, port } = new URL(target.restOrigin!)
  const socket = connect(Number(port), hostname).setNoDelay()
  await once(socket, 'connect')
  return socket
}

/** All reads of one stream that brought items. */
async function readsOn(socket: Socket, { peer, target }: Running, request: TimedRequest): Promise<Read[]> {
  const { path, headers, body } = peer.rest('timed', timedText(request))
  const bytes = requestBytes(target.restOrigin! + path, body, headers)
  const result: Read[] = []
  let text = ''
  let seen = 0
  return new Promise((resolve, reject) => {
    const start = performance.now()
    const finish = (end: () => void): void => {
      socket.removeAllListeners('data').removeAllListeners('error').removeAllListeners('close')
      end()
    }
    const onData = (part: Buffer): void => {
      const at = performance.now() - start
      text += part.toString('latin1')
      const items = [...text.matchAll(ITEM)].map((match) => ({ made: Number(match[2]) }))
      if (items.length > seen) result.push({ at, items: items.slice(seen) })
      seen = items.length
      if (!isWhole(text)) return
      if (seen === request.n) finish(() => resolve(result))
      else
        finish(() =>
          reject(new Error(`${target.name} sent ${seen} of ${request.n} items: ${text.slice(0, 300)}`)),
        )
    }
    socket.on('data', onData)
    socket.on('error', (error) => finish(() => reject(error)))
    socket.on('close', () => finish(() => reject(new Error(`${target.name} closed the connection`))))
    socket.write(bytes)
  })
}

function joined(rounds: readonly Read[][]): Pick<TimesRow, 'joined' | 'latest' | 'reads'> {
  const all = rounds.flat()
  const late = rounds.map((round) =>
    Math.max(...round.flatMap(({ at, items }) => items.map(({ made }) => at - made))),
  )
  return {
    joined: all.filter(({ items }) => items.length > 1).length / all.length,
    latest: median(late),
    reads: all.length,
  }
}

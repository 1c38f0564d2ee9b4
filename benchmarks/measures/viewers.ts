import { once } from 'node:events'
import { type ClientRequest, get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { COUNT } from '../ceilings/workload.ts'
import { cpuMilliseconds } from '../processes.ts'
import { median } from '../statistics.ts'
import { oursCommand, startWith } from '../targets/ours.ts'
import { type Figure, pause } from './figure.ts'
import { idleStream } from './idle-stream.ts'

const VIEWERS = 10
/** Open requests that the events have. */
const STREAMS = 32
const TURNS = 3
const TURN_SECONDS = 10
/** Milliseconds after a connection opened or closed. */
const REST_MS = 2000

/**
 * CPU time of the frontend for ten who read what the console reads, beside that for ten connections on
 * which nothing happens. A server at rest needs more of it than a busy one, whose code is in the caches; and
 * the difference of two throughputs is smaller than their noise.
 */
export async function measureViewers(): Promise<Figure[]> {
  const command = await oursCommand({ models: [COUNT] })
  const target = await startWith(command, [COUNT])
  const frontend = target.pids().slice(0, 1)
  const perSecond = async (come: () => Promise<() => void>): Promise<number> => {
    const leave = await come()
    await pause(REST_MS)
    const before = cpuMilliseconds(frontend)
    await pause(TURN_SECONDS * 1000)
    const milliseconds = cpuMilliseconds(frontend) - before
    leave()
    return milliseconds / TURN_SECONDS
  }
  const streams = await Promise.all(
    Array.from({ length: STREAMS }, () => idleStream(`${target.restOrigin!}/predictions/${COUNT}`)),
  )
  try {
    await pause(REST_MS)
    const without: number[] = []
    const having: number[] = []
    for (let turn = 0; turn < TURNS; turn++) {
      without.push(await perSecond(() => idle(command.managementOrigin, VIEWERS)))
      having.push(await perSecond(() => watch(command.managementOrigin, VIEWERS)))
    }
    const name = `CPU time of the frontend per second, ${STREAMS} open streams`
    const figure = (name: string, value: number, atMost?: number): Figure => ({
      ...{ measure: 'viewers', name, value, unit: 'ms', atMost },
    })
    return [
      figure(`${name}, nobody looks`, median(without)),
      figure(`${name}, for ${VIEWERS} viewers`, median(having) - median(without), 10),
    ]
  } finally {
    for (const socket of streams) socket.destroy()
    await target.stop()
  }
}

/** Opens connections on which nothing is sent. @returns a function that closes them */
async function idle(origin: string, connections: number): Promise<() => void> {
  const { hostname, port } = new URL(origin)
  const sockets = Array.from({ length: connections }, () => connect(Number(port), hostname))
  for (const socket of sockets) await once(socket, 'connect')
  return () => {
    for (const socket of sockets) socket.destroy()
  }
}

/**
 * Reads the events of the management API as often as the console's page would.
 * @param origin of the management API
 * @returns a function that leaves
 * @throws Error if a reader is refused
 */
export async function watch(origin: string, readers: number): Promise<() => void> {
  const requests: ClientRequest[] = []
  for (let i = 0; i < readers; i++) {
    const request = get(`${origin}/events?requests=5000`)
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    if (response.statusCode !== 200) throw new Error(`a reader of events gets ${response.statusCode!}`)
    response.on('error', () => undefined).resume()
    requests.push(request.on('error', () => undefined))
  }
  return () => {
    for (const request of requests) request.destroy()
  }
}

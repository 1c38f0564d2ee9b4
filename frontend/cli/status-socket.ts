import { createConnection, createServer, type Server } from 'node:net'
import { isObject, parseJson } from '../../common/json.ts'
import type { RunningServer, ServerStatus } from '../server-api.ts'

/** What a running server tells of itself. */
export interface ToldStatus extends ServerStatus {
  /** When it was started: yyyy-MM-dd'T'HH:mm:ss.SSS'Z' */
  readonly started: string
  readonly listening: RunningServer['listening']
}

const MAX_CONNECTIONS = 8
/** Milliseconds for an answer. */
const ANSWER_MS = 5_000
const MAX_BYTES = 64 * 1024 ** 2

/**
 * A Unix socket in a folder that only this user can enter. Who connects gets the server's status as JSON, and
 * can tell the server nothing.
 */
export class StatusSocket {
  readonly #path: string
  #server: Server | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** Resolves when it listens. The server also runs without it. */
  open(running: RunningServer): Promise<void> {
    const started = new Date(Date.now() - process.uptime() * 1000).toISOString()
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.setTimeout(ANSWER_MS, () => socket.destroy())
      socket.resume()
      running.status().then(
        (status) => socket.end(JSON.stringify({ ...status, started, listening: running.listening })),
        () => socket.destroy(),
      )
    })
    server.maxConnections = MAX_CONNECTIONS
    server.unref()
    this.#server = server
    return new Promise((resolve) => {
      server.once('error', () => resolve())
      server.listen(this.#path, () => resolve())
    })
  }

  close(): void {
    this.#server?.close()
  }
}

/** Asks a server for its status; undefined: it does not answer. */
export function askStatus(path: string): Promise<ToldStatus | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const socket = createConnection(path)
    socket.setTimeout(ANSWER_MS, () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > MAX_BYTES) socket.destroy()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(statusIn(Buffer.concat(chunks).toString('utf8'))))
  })
}

function statusIn(text: string): ToldStatus | undefined {
  const status = parseJson(text)
  // It comes from a server of this user, and of this version unless it was updated meanwhile.
  return isObject(status) && Array.isArray(status['models']) && Array.isArray(status['listening'])
    ? (status as unknown as ToldStatus)
    : undefined
}

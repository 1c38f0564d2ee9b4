import { connect } from 'node:net'
import { ChunkParser } from './chunk-parser.ts'
import { Timing } from './timing.ts'

export interface HttpRequest {
  port: number
  path: string
  /** Sent as JSON. */
  body: unknown
}

/**
 * Posts to the server over a raw socket and counts the chunks of the answer on the wire. Time starts when the
 * request is sent on the open connection.
 */
export function streamOverHttp(
  request: HttpRequest,
  onText: (text: string) => void,
  signal: AbortSignal,
): Promise<Timing> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    let timing = new Timing()
    const decoder = new TextDecoder()
    const parser = new ChunkParser({
      onHead: (status) => {
        if (status !== 200) throw new Error(`The server answered with status ${status}`)
      },
      onChunk: (chunk) => {
        timing.part()
        onText(decoder.decode(chunk, { stream: true }))
      },
      onEnd: () => {
        timing.end()
        resolve(timing)
      },
    })
    const socket = connect({ port: request.port, host: '127.0.0.1', noDelay: true, signal })
    socket.on('data', (bytes: Buffer) => {
      try {
        parser.push(bytes)
      } catch (error) {
        socket.destroy(error as Error)
      }
    })
    socket.once('error', reject)
    // No effect after a complete answer.
    socket.once('close', () => {
      reject(new Error('The connection broke before the end of the answer'))
    })
    socket.once('connect', () => {
      timing = new Timing()
      socket.write(message(request))
    })
  })
}

function message({ port, path, body }: HttpRequest): string {
  const json = JSON.stringify(body)
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(json)}`,
    'connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${json}`
}

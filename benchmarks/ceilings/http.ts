import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What the two HTTP ceilings share: reading a small body, and answering as fast as node:http lets one. */

/** Starts a server on any free port and says which. */
export function serve(
  answer: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void,
): void {
  const server = createServer((request, response) => {
    let body: Buffer | undefined
    request.on('data', (chunk: Buffer) => {
      body = body === undefined ? chunk : Buffer.concat([body, chunk])
    })
    request.on('end', () => {
      answer(request, response, body ?? Buffer.alloc(0))
    })
  })
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1', 4096, () => {
    process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
  })
}

/** A whole answer. Text instead of bytes lets node:http join head and body into one write. */
export function whole(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body, 'latin1')
}

/** The head of a chunked answer; frames follow it by `response.socket`, which is corked so that they leave together with it. */
export function openStream(response: ServerResponse): void {
  response.writeHead(200, {
    'content-type': 'text/plain; charset=utf-8',
    'transfer-encoding': 'chunked',
  })
  response.socket!.cork()
  response.flushHeaders()
}

/** One item as one HTTP chunk. Several joined in one socket write are twice as fast as `response.write` for each. */
export function framed(item: string): string {
  return `${item.length.toString(16)}\r\n${item}\r\n`
}

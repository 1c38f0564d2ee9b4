import { once } from 'node:events'
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'

const SERVICE = '/org.pytorch.serve.grpc.inference.InferenceAPIsService'
/** PredictionsRequest { model_name: "echo" } behind its five-byte prefix. */
const MESSAGE = Buffer.from('\0\0\0\0\u0006\n\u0004echo', 'latin1')

/**
 * One HTTP/2 connection without grpc-js, which reads ahead up to 16 messages and cancels by itself at a
 * deadline: here a call that nobody reads takes the 64 KB of its window and nothing more.
 */
export class RawClient {
  /** The server has said goodbye (GOAWAY). */
  toldToGo = false
  readonly #session: ClientHttp2Session

  constructor(port: number) {
    this.#session = connect(`http://127.0.0.1:${port}`)
    this.#session.on('error', () => undefined)
    this.#session.on('goaway', () => (this.toldToGo = true))
  }

  async goaway(): Promise<void> {
    if (!this.toldToGo) await once(this.#session, 'goaway')
  }

  call(rpc: string, headers: Record<string, string>): ClientHttp2Stream {
    const call = this.#session.request({
      ':method': 'POST',
      ':path': `${SERVICE}/${rpc}`,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    })
    call.on('error', () => undefined)
    call.end(MESSAGE)
    return call
  }

  stream(headers: Record<string, string> = {}): ClientHttp2Stream {
    return this.call('StreamPredictions', headers)
  }

  /** Cuts the connection. */
  async close(): Promise<void> {
    if (this.#session.destroyed) return
    this.#session.destroy()
    await once(this.#session, 'close')
  }
}

/** Reads a call to its end: how many bytes came. */
export async function readBytes(call: ClientHttp2Stream): Promise<number> {
  let bytes = 0
  for await (const chunk of call) bytes += (chunk as Buffer).byteLength
  return bytes
}

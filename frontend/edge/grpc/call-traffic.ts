import { Duplex } from 'node:stream'
import type { ServerHttp2Stream } from 'node:http2'

const TRAFFIC = Symbol('traffic')

type CountedStream = ServerHttp2Stream & { [TRAFFIC]?: CallTraffic }

/** Bytes of the messages of one call, as they are on the wire. Only for calls that have a limit. */
export class CallTraffic {
  bytes = 0

  /** Counts what grpc-js writes to the stream. What is read is counted by the call's RequestReader. */
  countWrites(stream: ServerHttp2Stream): void {
    const counted = stream as CountedStream
    counted[TRAFFIC] = this
    counted.write = writeCounted as ServerHttp2Stream['write']
  }
}

/** One function for all streams, as in request-reader.ts. */
function writeCounted(this: CountedStream, chunk: Uint8Array, ...rest: [BufferEncoding]): boolean {
  this[TRAFFIC]!.bytes += chunk.length
  return Duplex.prototype.write.call(this, chunk, ...rest)
}

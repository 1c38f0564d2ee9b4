import { EventEmitter } from 'node:events'
import type { Http2SecureServer, Http2Server } from 'node:http2'
import type { Server } from '@grpc/grpc-js'

/**
 * The HTTP/2 servers that a grpc-js server listens with. The only place that reads a private field of
 * grpc-js, which has no other way to its connections and streams. @throws Error when it has no such field any
 * more
 */
export function http2ServersOf(server: Server): readonly (Http2Server | Http2SecureServer)[] {
  const servers: unknown = server['http2Servers']
  const found = servers instanceof Map ? [...(servers as Map<unknown, unknown>).keys()] : []
  if (found.length === 0 || !found.every((each) => each instanceof EventEmitter)) {
    throw new Error(
      'This version of @grpc/grpc-js does not keep its HTTP/2 servers in `http2Servers`; use 1.14',
    )
  }
  return found as (Http2Server | Http2SecureServer)[]
}

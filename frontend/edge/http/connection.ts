import type { Socket } from 'node:net'

/** A reply that is not finished; it wants to know when its client has left. */
export interface LiveReply {
  /** Next in the connection's list. There is more than one only with pipelining. */
  nextOnSocket: LiveReply | undefined
  clientLeft(): void
}

/** What the server knows of one client's connection beside what Node does. */
export class Connection {
  readonly #socket: Socket
  #live: LiveReply | undefined
  #peer: string | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    // Per connection, never per request. A FIN shows as `end` (also from a client that has stopped reading),
    // a reset as `close`, a broken upload as either.
    const leave = (): void => this.#leave()
    socket.on('end', leave).on('close', leave)
  }

  /**
   * For the access log: `/127.0.0.1:50000`. A client of a Unix socket has no address; TorchServe shows it as
   * 127.0.0.1.
   */
  get peer(): string {
    const { remoteAddress: host, remotePort } = this.#socket
    return (this.#peer ??= host === undefined ? '127.0.0.1' : `/${host}:${remotePort}`)
  }

  /** Whether bytes of another response may be on their way. */
  get answering(): boolean {
    return this.#live !== undefined || this.#socket.writableLength > 0
  }

  /** False: the client has left already. */
  add(reply: LiveReply): boolean {
    if (this.#socket.destroyed || this.#socket.readableEnded) return false
    reply.nextOnSocket = this.#live
    this.#live = reply
    return true
  }

  remove(reply: LiveReply): void {
    let current = this.#live
    if (current === reply) {
      this.#live = reply.nextOnSocket
      return
    }
    while (current !== undefined && current.nextOnSocket !== reply) current = current.nextOnSocket
    if (current !== undefined) current.nextOnSocket = reply.nextOnSocket
  }

  #leave(): void {
    let reply = this.#live
    if (reply === undefined) return
    this.#live = undefined
    for (; reply !== undefined; reply = reply.nextOnSocket) reply.clientLeft()
    // A client that closed its end without reading on would hold the socket until everything is flushed,
    // which is never.
    this.#socket.destroy()
  }
}

const connections = new WeakMap<Socket, Connection>()

/** The connection of a socket; from its first request on it is watched for its client leaving. */
export function connectionOf(socket: Socket): Connection {
  let connection = connections.get(socket)
  if (connection === undefined) {
    connection = new Connection(socket)
    connections.set(socket, connection)
  }
  return connection
}

import type { Socket } from 'node:net'

/** A reply that is not finished; it wants to know when its client has left. */
export interface LiveReply {
  /** Next in the socket's list. There is more than one only with pipelining. */
  nextOnSocket: LiveReply | undefined
  clientLeft(): void
}

const LIVE = Symbol('live replies')

interface WatchedSocket extends Socket {
  [LIVE]?: LiveReply | undefined
}

/**
 * Watches one connection for its client leaving. Listeners are per connection, never per request: a FIN shows as `end` (also from
 * a client that has stopped reading), a reset as `close`, a broken upload as either.
 */
export function watchConnection(socket: Socket): void {
  socket.on('end', leave)
  socket.on('close', leave)
}

/** False: the client has left already. */
export function addLiveReply(socket: Socket, reply: LiveReply): boolean {
  if (socket.destroyed || socket.readableEnded) return false
  const watched: WatchedSocket = socket
  reply.nextOnSocket = watched[LIVE]
  watched[LIVE] = reply
  return true
}

export function removeLiveReply(socket: Socket, reply: LiveReply): void {
  const watched: WatchedSocket = socket
  let current = watched[LIVE]
  if (current === reply) {
    watched[LIVE] = reply.nextOnSocket
    return
  }
  while (current !== undefined && current.nextOnSocket !== reply) current = current.nextOnSocket
  if (current !== undefined) current.nextOnSocket = reply.nextOnSocket
}

export function hasLiveReplies(socket: Socket): boolean {
  return (socket as WatchedSocket)[LIVE] !== undefined
}

function leave(this: WatchedSocket): void {
  let reply = this[LIVE]
  if (reply === undefined) return
  this[LIVE] = undefined
  for (; reply !== undefined; reply = reply.nextOnSocket) reply.clientLeft()
  // A client that closed its end without reading on would hold the socket until everything is flushed, which is never.
  this.destroy()
}

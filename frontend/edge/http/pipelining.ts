import type { IncomingMessage, RequestListener } from 'node:http'
import { connectionOf } from './connection.ts'
import type { SafeResponse } from './safe-response.ts'

/** Handles a request of a REST listener. */
export type Listening = RequestListener<typeof IncomingMessage, typeof SafeResponse>

/** Requests that one connection may have handled before the answer to an earlier one is complete. */
const MAX_AHEAD = 8
/** Further requests that wait for their turn. Node reads on behind them for as long as a client sends. */
const MAX_WAITING = 100

/**
 * Handles most pipelined requests one after the other, each in a turn of the event loop. Node tells of all
 * requests in a piece of 64 KiB in one turn, and two thousand of them would take it for seconds. Who sends
 * too many loses the connection, as clients that pipeline have to expect (RFC 9112, section 9.3.2).
 */
export function inTurn(handle: Listening): Listening {
  return (req, res) => {
    // It has the socket from the start, unless others come first.
    if (res.socket !== null || !mustWait(req, res, handle)) handle(req, res)
  }
}

/** Whether the request is handled later, unless its client leaves before. */
function mustWait(req: IncomingMessage, res: SafeResponse, handle: Listening): boolean {
  const { socket } = req
  const connection = connectionOf(socket)
  if (connection.ahead < MAX_AHEAD) {
    connection.ahead += 1
    res.once('socket', () => (connection.ahead -= 1))
    return false
  }
  connection.waiting += 1
  if (connection.waiting > MAX_WAITING) socket.destroy()
  else
    res.once('socket', () => {
      connection.waiting -= 1
      setImmediate(() => socket.destroyed || handle(req, res))
    })
  return true
}

import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/**
 * A proxy port through which a test can cut off any client: its connections end like those of a killed
 * process.
 */
export class Cable {
  readonly port: number
  readonly #server: Server
  readonly #sockets: Set<Socket>

  private constructor(server: Server, sockets: Set<Socket>) {
    this.#server = server
    this.#sockets = sockets
    this.port = (server.address() as AddressInfo).port
  }

  static async to(port: number): Promise<Cable> {
    const sockets = new Set<Socket>()
    const server = createServer((near) => {
      const far = connect(port, '127.0.0.1')
      for (const socket of [near, far]) {
        sockets.add(socket.setNoDelay())
        socket.on('error', () => undefined)
        socket.on('close', () => sockets.delete(socket))
      }
      near.pipe(far).pipe(near)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Cable(server, sockets)
  }

  /** Destroys every connection. No new one is made. May be called again. */
  cut(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}

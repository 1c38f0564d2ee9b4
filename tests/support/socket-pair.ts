import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { afterEach } from '@jest/globals'

const sockets: Socket[] = []

/** Two ends of a real connection; both are closed after the test. */
export async function socketPair(): Promise<[Socket, Socket]> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const near = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [far] = (await once(server, 'connection')) as [Socket]
  server.close()
  sockets.push(near, far)
  return [near, far]
}

afterEach(async () => {
  for (const socket of sockets.splice(0)) {
    if (socket.closed) continue
    socket.destroy()
    await once(socket, 'close')
  }
})

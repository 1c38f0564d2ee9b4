import { once } from 'node:events'
import { createServer } from 'node:net'

/** TorchServe's tests name them all. */
const PORTS = [8080, 8081, 8082, 8443, 8444, 8445, 7070, 7071]

/** @throws Error when a port that the tests need is taken */
export async function freePorts(): Promise<void> {
  for (const port of PORTS) {
    const server = createServer().listen(port, '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch (error) {
      throw new Error(`TorchServe's tests need port ${port}, which is taken.`, { cause: error })
    }
    server.close()
    await once(server, 'close')
  }
}

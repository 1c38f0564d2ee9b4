import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the kernel's ephemeral ports, so that no other test gets one of these before it is used. */
const LOWEST = 10_000
const COUNT = 20_000

/** Ports of 127.0.0.1 that were free a moment ago, for programs that need explicit ports. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>()
  while (ports.size < count) {
    const port = LOWEST + Math.floor(Math.random() * COUNT)
    if (await isFree(port)) ports.add(port)
  }
  return [...ports]
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  await once(server.close(), 'close')
  return true
}

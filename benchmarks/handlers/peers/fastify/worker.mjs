/** The handlers, in a worker thread of piscina. A stream goes through its MessagePort; null ends it. */
import { setTimeout as wait } from 'node:timers/promises'

const ITEMS = Array.from({ length: 100 }, (_, index) => Buffer.from(`${String(index + 1).padEnd(99)}\n`))

export const echo = (body) => body

export function hundred({ port }) {
  for (const item of ITEMS) port.postMessage(item)
  port.postMessage(null)
}

export async function timed({ body, port }) {
  const start = performance.now()
  const { n, gap } = JSON.parse(Buffer.from(body).toString())
  for (let number = 1; number <= n; number++) {
    if (number > 1) await wait(gap)
    port.postMessage(Buffer.from(`${number} ${(performance.now() - start).toFixed(3)}`.padEnd(99) + '\n'))
  }
  port.postMessage(null)
}

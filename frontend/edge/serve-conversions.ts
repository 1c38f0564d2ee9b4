import { parentPort } from 'node:worker_threads'
import { ServeError } from '../../common/errors.ts'
import type { Conversions, ThreadAnswer } from './conversion-threads.ts'

/** Bytes of fewer may lie in a buffer that others share, and are quickly copied. */
const MIN_MOVED_BYTES = 65_536

/** The thread's side of ConversionThreads: runs the functions of the table. */
export function serveConversions(table: Conversions): void {
  const functions = new Map(Object.entries(table))
  const port = parentPort!
  port.on('message', ({ name, task }: { name: string; task: never }) => {
    try {
      const { value, bytes } = functions.get(name)!(task)
      port.postMessage({ value } satisfies ThreadAnswer, moved(bytes))
    } catch (thrown) {
      port.postMessage({ error: ServeError.from(thrown).toWire() } satisfies ThreadAnswer)
    }
  })
}

function moved(bytes: readonly Uint8Array[]): ArrayBuffer[] {
  const whole = bytes.filter(({ buffer, byteLength }) => {
    return byteLength >= MIN_MOVED_BYTES && byteLength === buffer.byteLength
  })
  return [...new Set(whole.map(({ buffer }) => buffer as ArrayBuffer))]
}

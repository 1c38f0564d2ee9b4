// The thread of conversion-threads.test.ts, with functions that a test can hold, and that break.
import { threadId } from 'node:worker_threads'
import { register } from 'tsx/esm/api'

register()
const { serveConversions } = await import('../../frontend/edge/serve-conversions.ts')

serveConversions({
  echo: ({ body }) => ({ value: { body, threadId }, bytes: [body] }),
  // Counts itself, and waits until the test opens the gate.
  held: ({ gate, number }) => {
    const cells = new Int32Array(gate)
    Atomics.add(cells, 1, 1)
    Atomics.wait(cells, 0, 0)
    return { value: number, bytes: [] }
  },
  hog: () => {
    const kept = []
    for (;;) kept.push(new Array(1_000).fill(kept.length))
  },
  exit: () => process.exit(3),
})

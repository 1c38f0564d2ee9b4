import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** Before it is ready: the pids of others, among them the server's, in the form of the worker's own line. */
const HANDLER = `
const lines = Array.from({ length: 50_000 }, (_, n) => '[PID]' + n + '\\n')
process.stdout.write(lines.join('') + '[PID]' + process.ppid + '\\n')
export const handle = () => ['answered']
`

test('a flood of pids that a worker prints is text for the log: the kernel names its process', async () => {
  const folder = join(tempDir(), 'm')
  mkdirSync(folder)
  writeFileSync(join(folder, 'handler.ts'), HANDLER)
  const server = await startServer({ models: [`m=${folder}`] })
  await server.ready('m')
  await server.until(
    () => Promise.resolve(server.output),
    (lines) => lines.some((line) => line.endsWith(`[PID]${server.pid}`)),
  )
  const { pid, memoryUsage } = await server.worker('m')
  expect(pid).not.toBe(server.pid)
  expect(readFileSync(`/proc/${pid}/cmdline`, 'latin1')).toContain('backend-worker')
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]!
  expect(memoryUsage / (Number(resident) * 1024)).toBeCloseTo(1, 0)
})

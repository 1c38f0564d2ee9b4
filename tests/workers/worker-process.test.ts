import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, jest, test } from '@jest/globals'
import { WorkerProcess, type CommandLine } from '../../frontend/workers/worker-process.ts'
import { heldBack } from '../support/held.ts'
import { isRunning } from '../support/processes.ts'
import { tempDir } from '../support/temp.ts'

const started: number[] = []

afterEach(() => {
  jest.useRealTimers()
  for (const pid of started.splice(0)) if (isRunning(pid)) process.kill(pid, 'SIGKILL')
})

/** A shell script as a worker. `line` is the first line that it writes, `lines` are all. */
function start(script: string): { worker: WorkerProcess; line: Promise<string>; lines: readonly string[] } {
  const line = heldBack<string>()
  const lines: string[] = []
  const command: CommandLine = {
    command: '/bin/sh',
    args: ['-c', script],
    workerArgs: ['-c', script],
    env: { PATH: process.env['PATH'] ?? '' },
    cwd: '/',
  }
  const worker = new WorkerProcess(command, {
    onLine: (_stream, text) => {
      lines.push(text)
      line.open(text)
    },
    onExit: () => undefined,
  })
  return { worker, line: line.opened, lines }
}

async function gone(pid: number): Promise<void> {
  while (isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** The pid of a child that the script has started in the background. */
async function childOf(line: Promise<string>): Promise<number> {
  const pid = Number(await line)
  started.push(pid)
  expect(isRunning(pid)).toBe(true)
  return pid
}

test('children of a worker end with it when somebody else ends it', async () => {
  const { worker, line } = start('sleep 600 & echo $!; wait')
  const child = await childOf(line)
  process.kill(worker.pid, 'SIGTERM')
  await worker.exited
  await gone(child)
})

test('children of a worker end with it when the server kills it', async () => {
  const { worker, line } = start('sleep 600 & echo $!; wait')
  const child = await childOf(line)
  worker.kill('SIGKILL')
  await worker.exited
  await gone(child)
})

test('a child in a session of its own ends with it, too', async () => {
  const { worker, line } = start("setsid sh -c 'echo $$; exec sleep 600' & wait")
  const child = await childOf(line)
  process.kill(worker.pid, 'SIGTERM')
  await worker.exited
  await gone(child)
})

test('its end does not wait for a child without its mark that holds its output', async () => {
  const { worker, line } = start("env -i setsid sh -c 'echo $$; exec sleep 600' & wait")
  const child = await childOf(line)
  process.kill(worker.pid, 'SIGTERM')
  await worker.exited
  expect(isRunning(child)).toBe(true)
})

test('what came before its outputs are let go is read, on a machine too busy to read it earlier', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] })
  const folder = tempDir()
  const [fifo, written] = [join(folder, 'fifo'), join(folder, 'written')]
  const script = `mkfifo ${fifo}
    env -i PATH="$PATH" setsid sh -c 'echo $$; cat ${fifo}; echo late; touch ${written}; exec sleep 600' & read -r never`
  const { worker, line, lines } = start(script)
  const child = await childOf(line)
  process.kill(worker.pid, 'SIGTERM')
  while (jest.getTimerCount() === 0) await turn()
  // Nothing is read while this waits.
  writeFileSync(fifo, '')
  while (!existsSync(written));
  jest.advanceTimersByTime(1000)
  await worker.exited
  expect(lines).toEqual([String(child), 'late'])
})

test('a heap that is full is told from other aborts, however long the stack below that line is', async () => {
  const message = 'FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory'
  const { worker } = start(`echo '${message}' >&2; seq 60 >&2; kill -ABRT $$`)
  expect(await worker.exited).toMatchObject({
    outOfMemory: true,
    reason: 'The process ran out of heap memory',
  })
})

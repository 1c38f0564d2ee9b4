import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { afterEach, describe, expect, test } from '@jest/globals'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { spawn } from '../support/tools.ts'

const running: ChildProcess[] = []

afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL')
})

interface Demo {
  child: ChildProcess
  folder: string
  output: () => string
}

/** The second half of `npm run demo`; the first half, the build, comes before all tests. */
function startDemo(): Demo {
  const folder = tempDir()
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/demo.ts'], {
    cwd: REPOSITORY,
    env: { ...process.env, NODE_OPTIONS: '', TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.push(child)
  let output = ''
  const add = (data: Buffer): void => {
    output += data.toString()
  }
  child.stdout.on('data', add)
  child.stderr.on('data', add)
  return { child, folder, output: () => output }
}

async function printed(demo: Demo, text: string): Promise<void> {
  while (!demo.output().includes(text)) await once(demo.child.stdout!, 'data')
}

/** Folders that the demo and its server made. */
function leftovers(demo: Demo): string[] {
  return readdirSync(demo.folder).filter((name) => name.startsWith('torchserve-ts'))
}

const LAST_LINES =
  /\nchunked HTTP: (\d+) chunks, first after ([\d.]+) ms, ([\d.]+) ms in all\nStreamPredictions: (\d+) messages, first after ([\d.]+) ms, ([\d.]+) ms in all\n$/

describe('npm run demo', () => {
  test('streams at least 200 parts over each protocol, the first before the last', async () => {
    const demo = startDemo()
    const [code] = (await once(demo.child, 'close')) as [number]
    expect(demo.output()).toMatch(LAST_LINES)
    expect(code).toBe(0)
    const figures = LAST_LINES.exec(demo.output())!.slice(1).map(Number)
    const [chunks, firstChunk, http, messages, firstMessage, grpc] = figures as [number, ...number[]]
    expect(chunks).toBeGreaterThanOrEqual(200)
    expect(messages).toBe(chunks)
    const [, overHttp, overGrpc] = demo.output().split(/\n--- .* ---\n/)
    expect(overGrpc!.startsWith(overHttp!.trimEnd())).toBe(true)
    expect(leftovers(demo)).toEqual([])
    // Parts that are kept to the end come in its last hundredth; on a busy machine the first may take half.
    for (const part of [firstChunk! / http!, firstMessage! / grpc!]) expect(part).toBeLessThan(0.9)
  })

  test('leaves nothing behind when it is interrupted', async () => {
    const demo = startDemo()
    await printed(demo, 'Waiting for the model')
    demo.child.kill('SIGINT')
    const [code] = (await once(demo.child, 'close')) as [number]
    expect(code).toBe(130)
    expect(demo.output()).toContain('Stopped by SIGINT')
    expect(leftovers(demo)).toEqual([])
  })
})

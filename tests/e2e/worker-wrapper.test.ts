import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { childrenOf, commandOf, isRunning } from '../support/processes.ts'
import { modelFolder } from '../support/model-folder.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { answerOf } from '../support/python/client.ts'

const ONE = { minWorkers: 1, maxWorkers: 1 }

/** A program that notes its arguments and starts the worker as a child of a child. */
function wrapper(): { path: string; seen: () => string[] } {
  const folder = tempDir()
  const [path, log] = [join(folder, 'wrap'), join(folder, 'log')]
  writeFileSync(
    path,
    `#!/bin/sh\necho "$1 $2 $3 $4" >> ${log}\nshift 4\nsh -c '"$@"; exit $?' sh "$@" <&0\nexit $?\n`,
  )
  chmodSync(path, 0o755)
  return { path, seen: () => readFileSync(log, 'utf8').trim().split('\n') }
}

async function died(server: Server, model: string): Promise<{ reason: string; stderr: string[] }> {
  const worker = await server.until(
    () => server.worker(model),
    ({ lastExit }) => lastExit !== undefined,
  )
  return worker.lastExit!
}

describe('worker_wrapper', () => {
  test('runs each rank, and pid and memory are those of the worker behind it', async () => {
    const { path, seen } = wrapper()
    const models = ['{"plain":{"1.0":{"workerWrapper":[]}}}']
    const server = await startServer({
      models: [
        modelFolder('parent', 'parent', ONE),
        modelFolder('plain', 'parent', ONE),
        modelFolder('ranks', 'ranks', { ...ONE, parallelType: 'tp', parallelLevel: 2 }),
      ],
      env: { RANK_LOG: tempDir() },
      config: {
        worker_wrapper: `${path} {model_dir} {work_dir} {worker_dir} {server_dir}`,
        models: models.join(),
      },
    })
    await Promise.all(['parent', 'plain', 'ranks'].map((model) => server.ready(model)))
    expect(seen()).toHaveLength(3)
    const [modelDir, workDir, workerDir, serverDir] = seen()[0]!.split(' ')
    expect(modelDir).toMatch(/\/(parent|ranks)$/)
    expect(workDir).toMatch(/\/tmp\/models\/[0-9a-f]{32}$/)
    expect(workerDir).toMatch(/\/tmp\/ts-[^/]+\/[^/]+$/)
    expect(serverDir).toBe(process.cwd())

    const { pid, memoryUsage } = await server.worker('parent')
    expect(commandOf(pid).slice(0, 1)).toEqual([process.execPath])
    expect(memoryUsage).toBeGreaterThan(20_000_000)
    const plain = await server.worker('plain')
    expect(childrenOf(server.pid)).toContain(plain.pid)
    expect(childrenOf(server.pid)).not.toContain(pid)

    const { pids } = await answerOf<{ pids: number[] }>(server, 'parent', { op: 'start' })
    expect((await server.manage('DELETE', '/models/parent')).status).toBe(200)
    await server.until(
      async () => [pid, ...pids].filter(isRunning),
      (left) => left.length === 0,
    )
  })

  test('that is missing, or fails, is a failed worker with its words', async () => {
    const models = {
      missing: { '1.0': { workerWrapper: ['/no/such/wrapper'] } },
      fails: { '1.0': { workerWrapper: ['sh', '-c', 'echo no such bus >&2; exit 3'] } },
      killed: { '1.0': { workerWrapper: ['sh', '-c', 'exit 137'] } },
    }
    const names = Object.keys(models)
    const server = await startServer({
      models: names.map((name) => modelFolder(name, 'parent', ONE)),
      config: { models: JSON.stringify(models) },
    })
    expect((await died(server, 'missing')).reason).toMatch(
      /could not be started: .*\/no\/such\/wrapper ENOENT/,
    )
    expect(await died(server, 'fails')).toMatchObject({
      reason: 'The process exited with code 3',
      stderr: ['no such bus'],
    })
    expect((await died(server, 'killed')).reason).toBe('The process exited with code 137')
  })
})

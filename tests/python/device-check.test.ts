import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { checkDevice } from '../../frontend/workers/python/device-check.ts'
import type { CommandLine } from '../../frontend/workers/worker-process.ts'
import { describePython } from '../support/python/test-python.ts'
import { type Server, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

function shell(script: string): CommandLine {
  const args = ['-c', script]
  return { command: '/bin/sh', args, workerArgs: args, env: { PATH: '/bin:/usr/bin' }, cwd: tempDir() }
}

test('a device that can be used is tried once, another at each start', async () => {
  const folder = tempDir()
  const count = (name: string, end: string): CommandLine => shell(`echo x >> ${join(folder, name)}; ${end}`)
  const twice = async (name: string, end: string): Promise<(string | undefined)[]> => [
    await checkDevice(count(name, end), name),
    await checkDevice(count(name, end), name),
  ]
  expect(await twice('good', 'exit 0')).toEqual([undefined, undefined])
  const words = 'CUDA error 304: not supported'
  expect(await twice('bad', `echo 'warning'; echo 'device: ${words}' >&2; exit 1`)).toEqual([words, words])
  const tries = ['good', 'bad'].map((name) => readFileSync(join(folder, name), 'utf8'))
  expect(tries).toEqual(['x\n', 'x\nx\n'])
})

await describePython('a GPU that cannot be used', ({ python }) => {
  const folder = tempDir()
  const calls = join(folder, 'calls')
  const wrapper = join(folder, 'wrapper')
  writeFileSync(wrapper, `#!/bin/sh\necho "$CUDA_DEVICE_ORDER $*" >> ${calls}\nexec "$@"\n`)
  writeFileSync(join(folder, 'nvidia-smi'), "#!/bin/sh\necho 'GPU 0: NVIDIA (UUID: GPU-a)'\n")
  for (const file of ['wrapper', 'nvidia-smi']) chmodSync(join(folder, file), 0o755)
  const modelStore = tempDir()
  mkdirSync(join(modelStore, 'm'))
  writeFileSync(join(modelStore, 'm', 'handler.py'), 'def handle(data, context):\n    return data\n')
  writeFileSync(join(modelStore, 'm', 'model-config.yaml'), 'minWorkers: 1\nmaxWorkers: 1\n')

  const start = (config: Record<string, string | boolean>): Promise<Server> =>
    startServer({
      modelStore,
      models: ['m'],
      config: { python, worker_wrapper: wrapper, ...config },
      env: { PATH: `${folder}:${process.env['PATH']!}` },
    })

  test('is told in the words of the library, tried like the worker, and describe says what is used', async () => {
    const server = await start({})
    await server.ready('m')
    const [line] = await server.lines('cannot be used, so it computes on the CPU')
    expect(line).toMatch(
      / \[WARN \] W-9000-m_1\.0 .*Its GPU \(cuda:0\) cannot be used, so it computes on the CPU: \S/,
    )
    const { workers } = (await server.describe('m'))[0]!
    expect(workers).toMatchObject([{ gpu: false, device: 'cpu', deviceIds: [0] }])
    const started = readFileSync(calls, 'utf8')
    expect(started).toMatch(/^PCI_BUS_ID \S+ -c[^]* cuda:0$/m)
    expect(started).toMatch(/^PCI_BUS_ID .*model_service_worker\.py/m)
  })

  test('refuses the load with require_gpu', async () => {
    const server = await start({ require_gpu: true })
    const [line] = await server.lines('The GPU cannot be used (require_gpu): ')
    expect(line).toContain('The GPU cannot be used (require_gpu): ')
    const { workers } = (await server.describe('m'))[0]!
    expect(workers).toMatchObject([{ status: 'UNLOADING', pid: -1 }])
  })
})

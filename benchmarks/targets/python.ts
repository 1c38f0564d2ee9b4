import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packPython } from '../../tests/support/python/archive.ts'
import { standInPython, type TestPython } from '../../tests/support/python/environments.ts'
import { hasJava, TorchServe } from '../../tests/support/python/torchserve.ts'
import { ECHO, HUNDRED } from '../ceilings/workload.ts'
import { processTree } from '../processes.ts'
import { scratch } from '../scratch.ts'
import { oursCommand, startWith } from './ours.ts'
import type { Target } from './target.ts'

const HANDLERS = fileURLToPath(new URL('../handlers/python/', import.meta.url))
/** One worker per model, in both servers. */
const CONFIG = 'minWorkers: 1\nmaxWorkers: 1\n'

/**
 * TorchServe and torchserve-ts with the same archives and the same Python. The handlers use nothing of
 * PyTorch, so a stand-in replaces it.
 * @throws Error when pip or Java is missing
 */
export async function startPythonTargets(): Promise<[Target, Target]> {
  const python = await standInPython()
  if (python === undefined || !(await hasJava()))
    throw new Error('The comparison with TorchServe needs Python 3 with venv and pip, and Java 17.')
  const store = scratch('python-store')
  for (const name of [ECHO, HUNDRED])
    await packPython(python, store, {
      ...{ name, config: CONFIG, handler: readFileSync(join(HANDLERS, `${name}.py`), 'utf8') },
    })
  const torchserve = await startTorchServe(python, store)
  const command = await oursCommand({
    ...{ models: [], config: `python=${python.python}`, modelStore: store },
  })
  command.args.splice(command.args.indexOf('--models') + 1, 0, 'all')
  try {
    return [torchserve, await startWith(command, [ECHO, HUNDRED])]
  } catch (error) {
    await torchserve.stop()
    throw error
  }
}

async function startTorchServe(python: TestPython, store: string): Promise<Target> {
  const folder = scratch('torchserve')
  mkdirSync(folder)
  const server = await TorchServe.start(python, store, folder, [ECHO, HUNDRED])
  return {
    name: 'TorchServe',
    restOrigin: `http://127.0.0.1:${server.ports.inference}`,
    grpcOrigin: `http://127.0.0.1:${server.ports.grpcInference}`,
    pids: () => processTree(server.pid),
    stop: () => server.stop(),
  }
}

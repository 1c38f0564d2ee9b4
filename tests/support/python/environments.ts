import { join } from 'node:path'
import { makeOnce } from './make-once.ts'
import { findBasePython, installPackages, makeVenv } from './venv.ts'
import { BUILD } from './places.ts'

/** A Python environment with TorchServe's worker and archivers from PyPI. */
export interface TestPython {
  /** Absolute path of the interpreter. */
  readonly python: string
  /** Absolute folder of its commands: torch-model-archiver, torch-workflow-archiver. */
  readonly bin: string
  /** Whether PyTorch is the real one. */
  readonly realTorch: boolean
}

/** The versions are fixed, so that a new release cannot break a test. */
export const TORCHSERVE_PACKAGES = [
  'torchserve==0.12.0',
  'torch-model-archiver==0.12.0',
  'torch-workflow-archiver==0.2.15',
  'pyyaml==6.0.3',
  'psutil==7.2.2',
]
/** What replaces PyTorch: a folder of Python packages. */
export const STAND_IN = join(import.meta.dirname, 'stand-in')

/**
 * The Python environment for the tests. By default PyTorch is a stand-in with only what the worker imports.
 * With TEST_PYTHON=torch (npm run test:python sets it) it is the real one. Created in .build once, which
 * takes about 20 seconds.
 * @returns undefined if no Python with venv and pip is installed
 */
export function testPython(): Promise<TestPython | undefined> {
  return process.env['TEST_PYTHON'] === 'torch' ? torchPython() : standInPython()
}

/** With the stand-in for PyTorch. */
export async function standInPython(): Promise<TestPython | undefined> {
  const base = await findBasePython()
  if (base === undefined) return undefined
  const folder = join(BUILD, 'python')
  await makeOnce(folder, JSON.stringify([base.version, TORCHSERVE_PACKAGES, STAND_IN]), async () => {
    await makeVenv(base.python, folder, [STAND_IN])
    await installPackages(folder, TORCHSERVE_PACKAGES)
  })
  return { python: join(folder, 'bin', 'python'), bin: join(folder, 'bin'), realTorch: false }
}

/** The real PyTorch comes from TORCH_PYTHON, an interpreter that already has it, or else from PyPI. */
export async function torchPython(): Promise<TestPython | undefined> {
  const given = process.env['TORCH_PYTHON']
  const base = await findBasePython(given)
  if (base === undefined) return undefined
  const folder = join(BUILD, 'python-torch')
  const packages = given === undefined ? [...TORCHSERVE_PACKAGES, 'numpy', 'torch'] : TORCHSERVE_PACKAGES
  await makeOnce(folder, JSON.stringify([base, packages]), async () => {
    await makeVenv(base.python, folder, given === undefined ? [] : base.sitePackages)
    await installPackages(folder, packages)
  })
  return { python: join(folder, 'bin', 'python'), bin: join(folder, 'bin'), realTorch: true }
}

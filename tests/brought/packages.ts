import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { torchPython } from '../support/python/environments.ts'
import { makeOnce } from '../support/python/make-once.ts'
import { BUILD } from '../support/python/places.ts'
import { installPackages, makeVenv, purelib } from '../support/python/venv.ts'
import { execa } from '../support/tools.ts'

const PYTHON = [
  'joblib==1.6.0',
  'matplotlib==3.11.2',
  'numba==0.68.1',
  'huggingface_hub==2.4.0',
  'transformers==5.24.0',
  'datasets==5.2.0',
  'onnxruntime==1.32.0',
]
const NODE = ['sharp@0.35.5', 'onnxruntime-node@1.30.0', 'node-llama-cpp@3.21.1']

/** PyTorch and what else the cases import. @returns the folder of its commands */
export async function broughtPython(): Promise<string> {
  const torch = await torchPython()
  if (torch === undefined) throw new Error('The cases need a Python 3 with venv and pip.')
  const folder = join(BUILD, 'python-brought')
  await makeOnce(folder, JSON.stringify([torch.python, PYTHON]), async () => {
    await makeVenv(torch.python, folder, [await purelib(torch.python)])
    await installPackages(folder, PYTHON)
  })
  return join(folder, 'bin')
}

/** @returns a node_modules */
export async function broughtModules(): Promise<string> {
  const folder = join(BUILD, 'node-brought')
  await makeOnce(folder, JSON.stringify(NODE), async () => {
    mkdirSync(folder)
    // The scripts of node-llama-cpp and onnxruntime-node fetch what only GPUs need.
    const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder]
    await execa('npm', ['install', ...flags, ...NODE])
  })
  return join(folder, 'node_modules')
}

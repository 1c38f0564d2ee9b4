import { dirname } from 'node:path'
import { BLOCKS } from '../docs/blocks.ts'
import { spawnSync } from './tools.ts'

/** The recipe of docs/worker-wrapper.md for this program, with the folder of Node where it is not in /usr. */
export function recipe(program: string): string {
  const line = blockWith(`worker_wrapper=${program}`).slice('worker_wrapper='.length).trim()
  const node = dirname(process.execPath)
  return program !== 'bwrap' || node.startsWith('/usr/') ? line : `${line} --ro-bind ${node} ${node}`
}

/** The script of that page that begins so. */
export function script(comment: string): string {
  return blockWith(comment)
}

/** Why bubblewrap cannot make a sandbox on this machine; undefined: it can. */
export function whyNoBubblewrap(): string | undefined {
  const { status, error, stderr } = spawnSync('bwrap', [
    '--unshare-pid',
    '--unshare-net',
    '--ro-bind',
    '/',
    '/',
    'true',
  ])
  return status === 0 ? undefined : (error?.message ?? String(stderr).trim())
}

function blockWith(text: string): string {
  const found = BLOCKS.find(({ page, code }) => page === 'docs/worker-wrapper.md' && code.includes(text))
  if (found === undefined) throw new Error(`docs/worker-wrapper.md has no block with ${text}`)
  return found.code
}

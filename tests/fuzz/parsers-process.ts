import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readLines } from '../../frontend/workers/read-lines.ts'
import { spawn } from '../support/tools.ts'
import { FINDINGS, keep } from './places.ts'
import type { Counts } from './run.ts'

export interface ParserOptions {
  seconds: number
  seed: number
  /** For temporary files. */
  folder: string
  /** Where new inputs go; empty: nowhere. */
  corpus: string
  /** Targets; empty: all. */
  names: readonly string[]
}

/** Milliseconds without a sign of life after which the input is taken to be endless. */
const SILENT_MS = 60_000
const HEAP_MB = 512

/** Runs parsers.ts in a process, and keeps the input on which it stood still or died. */
export async function fuzzParsers(options: ParserOptions, counts: Counts): Promise<void> {
  const { seconds, seed, folder, corpus, names } = options
  const current = join(folder, 'current-input')
  const script = join(import.meta.dirname, 'parsers.ts')
  const flags = [`--max-old-space-size=${HEAP_MB}`, '--import', 'tsx', script]
  const child = spawn(
    process.execPath,
    [...flags, String(seconds), String(seed), current, corpus, ...names],
    {
      env: { ...process.env, TMPDIR: folder },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    },
  )
  let timer: NodeJS.Timeout | undefined
  const alive = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => child.kill('SIGKILL'), SILENT_MS)
  }
  alive()
  child.on('message', alive)
  const print = (line: string): void => {
    console.log(line)
    if (/^(ok|FAILED) /.test(line)) counts[line.startsWith('ok') ? 'passed' : 'failed'] += 1
  }
  readLines(child.stdout!, print)
  readLines(child.stderr!, print)
  const how = await new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal)),
  )
  clearTimeout(timer)
  if (how === 0) return
  counts.failed += 1
  console.log(`FAILED the parsers' process ended with ${how}; its last input: ${lastInput(current)}`)
}

/** What parsers.ts wrote before it tried it. */
function lastInput(path: string): string {
  if (!existsSync(path)) return 'none'
  const bytes = readFileSync(path)
  const first = bytes.indexOf('\n')
  const second = bytes.indexOf('\n', first + 1)
  const length = Number(bytes.toString('latin1', first + 1, second))
  return keep(FINDINGS, bytes.toString('latin1', 0, first), bytes.subarray(second + 1, second + 1 + length))
}

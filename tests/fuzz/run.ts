/**
 * Changed inputs for every parser, and for a running server: `npm run fuzz -- --minutes N [NAME...]`
 * (docs/internals/reliability.md). One line per target; findings are kept in tests/fuzz/findings. Ends with
 * `N passed, N failed`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { Random } from '../support/random.ts'
import { fuzzServer } from './live.ts'
import { fuzzParsers } from './parsers-process.ts'
import { CORPUS } from './places.ts'
import { TARGETS } from './targets/index.ts'

export interface Counts {
  passed: number
  failed: number
}

interface Options {
  minutes: number
  seed: number
  keep?: boolean
}

const number = (text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above 0.')
  return value
}

/** The name of the part that needs a server. */
const SERVER = 'server'
const names = [...TARGETS.map(({ name }) => name), SERVER]
const command = new Command('fuzz')
  .description('Tries changed inputs on every parser, and on a running server.')
  .option('--minutes <n>', 'how long; half of it for the parsers, half for the server', number, 1)
  .option(
    '--seed <n>',
    'repeats the choices of a run',
    number,
    Math.floor(new Random(Date.now()).fraction() * 1e9) + 1,
  )
  .option('--keep', 'adds small inputs that reach new code to tests/fuzz/corpus')
  .argument('[names...]', `only these: ${names.join(', ')}`)
  .parse()
const { minutes, seed, keep } = command.opts<Options>()
const wanted = command.args
const unknown = wanted.find((name) => !names.includes(name))
if (unknown !== undefined) command.error(`${unknown} is not one of ${names.join(', ')}`)
console.log(`${minutes} minutes, --seed ${seed}`)
const parsers = wanted.filter((name) => name !== SERVER)
const hasBoth = wanted.length === 0 || (wanted.includes(SERVER) && parsers.length > 0)
const seconds = (minutes * 60) / (hasBoth ? 2 : 1)
const folder = mkdtempSync(join(tmpdir(), 'torchserve-ts-fuzz-'))
const counts: Counts = { passed: 0, failed: 0 }
try {
  if (wanted.length === 0 || parsers.length > 0)
    await fuzzParsers({ seconds, seed, folder, corpus: keep === true ? CORPUS : '', names: parsers }, counts)
  if (wanted.length === 0 || wanted.includes(SERVER))
    await fuzzServer({ seconds, folder, random: new Random(seed) }, counts)
} catch (error) {
  counts.failed += 1
  console.log(`FAILED the run: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
}
console.log(`${counts.passed} passed, ${counts.failed} failed`)
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1

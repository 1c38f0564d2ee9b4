/**
 * The part of `npm run fuzz` that tries parsers, in a process of its own: when it stands still or dies, the
 * input is in the file that it was given. Arguments: seconds, seed, that file, folder for new inputs (or
 * empty), target names.
 */
import { openSync, writeSync } from 'node:fs'
import { Random } from '../support/random.ts'
import { Coverage } from './coverage.ts'
import { mutate } from './mutate.ts'
import { CORPUS, FINDINGS, inputsOf, keep } from './places.ts'
import { TARGETS } from './targets/index.ts'
import { type Target, tryInput } from './target.ts'

const [seconds, seed, currentFile, newCorpus = '', ...names] = process.argv.slice(2)
/** Milliseconds between two looks at the coverage, which take a good part of 100 ms each. */
const BATCH_MS = 1_000
const MAX_BATCH = 4_096
/** CPU milliseconds that no input of 64 KiB may take. */
const SLOW_MS = 1_000
const MAX_POOL = 300
const MAX_KEPT_BYTES = 2_048
const MAX_FINDINGS = 10

/** One target and the inputs that it is known to tell apart. */
class Fuzzing {
  readonly target: Target
  readonly pool: Buffer[] = []
  runs = 0
  findings = 0
  readonly #told = new Set<string>()

  constructor(target: Target) {
    this.target = target
  }

  async prepare(): Promise<void> {
    const seeds = (await this.target.seeds()).map((seed) => Buffer.from(seed))
    this.pool.push(...seeds, ...inputsOf(CORPUS, this.target.name))
    for (const input of this.pool) await this.try(input)
  }

  async try(input: Buffer): Promise<void> {
    noteInput(this.target.name, input)
    this.runs += 1
    const began = process.cpuUsage()
    try {
      await tryInput(this.target, input)
    } catch (error) {
      this.#found(input, error instanceof Error ? (error.stack ?? error.message) : String(error))
    }
    if (warned !== undefined) this.#found(input, warned)
    warned = undefined
    const { user, system } = process.cpuUsage(began)
    if ((user + system) / 1000 > SLOW_MS) this.#found(input, `takes ${Math.round((user + system) / 1000)} ms`)
  }

  #found(input: Buffer, what: string): void {
    const kind = what.replace(/\d+/g, 'N').slice(0, 200)
    if (this.#told.has(kind) || this.findings >= MAX_FINDINGS) return
    this.#told.add(kind)
    this.findings += 1
    console.log(
      `FINDING ${this.target.name}: ${keep(FINDINGS, this.target.name, input)}\n    ${what.split('\n').slice(0, 4).join('\n    ')}`,
    )
  }
}

const current = openSync(currentFile!, 'w')

/** The name of the target in a line, the length in a line, the input. */
function noteInput(name: string, input: Buffer): void {
  writeSync(
    current,
    Buffer.concat([Buffer.from(`${name}\n${String(input.length).padStart(6)}\n`), input]),
    0,
    undefined,
    0,
  )
}

/** Tries changed inputs for a while; one that reached new code joins the pool. */
async function turn(fuzzing: Fuzzing): Promise<void> {
  const { target, pool } = fuzzing
  const end = performance.now() + BATCH_MS
  const batch: Buffer[] = []
  while (performance.now() < end && batch.length < MAX_BATCH) {
    const input = mutate(random.pick(pool), random, pool, target.words)
    batch.push(input)
    await fuzzing.try(input)
  }
  const fresh = coverage.take()
  const found = fresh.size > 0 ? await reaching(fuzzing, batch, fresh) : undefined
  if (found === undefined) return
  if (pool.length < MAX_POOL) pool.push(found)
  else pool[random.integer(0, MAX_POOL - 1)] = found
  if (newCorpus !== '' && found.length <= MAX_KEPT_BYTES) keep(newCorpus, target.name, found)
}

/** Halves the batch until one input is left that reaches some of the blocks. */
async function reaching(
  fuzzing: Fuzzing,
  batch: Buffer[],
  blocks: ReadonlySet<string>,
): Promise<Buffer | undefined> {
  let left = batch
  while (left.length > 1) {
    const half = left.slice(0, left.length / 2)
    for (const input of half) await fuzzing.try(input)
    left = coverage.reaches(blocks) ? half : left.slice(left.length / 2)
  }
  return left[0]
}

// A warning is a line, or several, in the log of a server, with text that a stranger wrote.
let warned: string | undefined
process.on('warning', ({ name, message }) => (warned = `a warning of the process: ${name}: ${message}`))

const random = new Random(Number(seed))
const coverage = new Coverage()
const all = TARGETS.filter(({ name }) => names.length === 0 || names.includes(name)).map(
  (each) => new Fuzzing(each),
)
for (const each of all) await each.prepare()
coverage.take()
const end = performance.now() + Number(seconds) * 1000
for (let k = 0; performance.now() < end; k += 1) {
  await turn(all[k % all.length]!)
  process.send?.('alive')
}
for (const { target, runs, findings, pool } of all)
  console.log(
    `${findings === 0 ? 'ok' : 'FAILED'} ${target.name}: ${runs} inputs, ${pool.length} in the pool, ${findings} findings`,
  )
console.log(`    ${coverage.blocks} blocks of code reached`)
process.disconnect?.()

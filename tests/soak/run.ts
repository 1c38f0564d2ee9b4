/**
 * A server under mixed load and random faults: `npm run soak -- --minutes N [--seed N]`
 * (docs/internals/reliability.md). Every item has the id of its request and its place. Prints the answers,
 * the faults, and one line per check; ends with `N passed, N failed`.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { Random } from '../support/random.ts'
import { PYTHON } from './models.ts'
import { deaths } from './deaths.ts'
import { report, tell } from './report.ts'
import { soak } from './soak.ts'

interface Options {
  minutes: number
  seed: number
  clients: number
  deaths?: boolean
}

const above = (least: number) => (text: string) => {
  const value = Number(text)
  if (!(value >= least)) throw new InvalidArgumentError(`It must be a number of at least ${least}.`)
  return value
}

const command = new Command('soak')
  .description('Runs a server under mixed load and random faults, and checks every item and what is left.')
  .option('--minutes <n>', 'how long, without the start and the end', above(0.1), 2)
  .option(
    '--seed <n>',
    'repeats the choices of a run',
    above(0),
    Math.floor(new Random(Date.now()).fraction() * 1e9),
  )
  .option('--clients <n>', 'streams at one time', above(1), 16)
  .option('--deaths', 'instead: workers that die every few seconds, and a handler that ends its process')
  .parse()
const { minutes, seed, clients, deaths: isOfDeaths } = command.opts<Options>()
if (process.platform !== 'linux')
  command.error('The soak needs Linux: it reads memory and descriptors from /proc')
console.log(`${minutes} minutes, ${clients} clients, --seed ${seed}`)
if (PYTHON === undefined) console.log('Python handlers are left out: no Python 3 with venv and pip was found')
const folder = await mkdtemp(join(tmpdir(), 'torchserve-ts-soak-'))
try {
  const random = new Random(seed)
  const failed = isOfDeaths
    ? tell(await deaths(folder, minutes, random))
    : report(await soak({ folder, minutes, clients, random }))
  process.exitCode = failed === 0 ? 0 : 1
} catch (error) {
  console.log(`FAILED the run: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  console.log('0 passed, 1 failed')
  process.exitCode = 1
} finally {
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
}

import { Command, InvalidArgumentError, Option } from 'commander'
import type { Pace } from './measures/throughput.ts'

export const MEASURES = [
  'rest',
  'grpc',
  'memory',
  'disconnect',
  'items',
  'stalled',
  'start',
  'viewers',
  'python',
] as const
export type Measure = (typeof MEASURES)[number]

/**
 * How a worker takes batches: one at a time, as a model has it by default, or side by side, with
 * `asyncCommunication: true`.
 */
export const SETTINGS = ['default', 'side-by-side'] as const
export type Settings = (typeof SETTINGS)[number]

export interface Options extends Pace {
  only: Measure[]
  /** Fresh servers per memory and start figure. */
  repeats: number
  clients: number[]
  /** Whether to leave torchserve-ts out of the throughput benchmark. */
  ceilingsOnly: boolean
  /** Folder of another checkout, built: throughput is compared with it instead of the ceilings. */
  before?: string
  /** The settings of the models; throughput is measured with each of them. */
  settings: readonly Settings[]
  /** Least share of the other checkout's throughput. */
  atLeast: number
}

interface Flags {
  only?: Measure[]
  rounds: number
  seconds: number
  quick?: boolean
  ceilings?: boolean
  before?: string
  settings?: Settings[]
  atLeast: number
}

/** Parses the command line. Prints help or an error and exits the process. */
export function readOptions(argv: string[]): Options {
  const command = new Command('bench')
    .description('Measures torchserve-ts beside ceilings written for speed. Needs Linux (/proc).')
    .addOption(
      new Option(
        '--only <measures...>',
        'measure these only; python, which needs pip and Java, only when it is named',
      ).choices(MEASURES),
    )
    .option('--rounds <n>', 'rounds of each comparison', wholeNumber, 5)
    .option('--seconds <n>', 'seconds of one burst of load, from 0.2', seconds, 2)
    .option('--ceilings', 'throughput of the ceilings alone, to see how noisy the machine is')
    .option('--before <folder>', 'compare throughput with another checkout, built, in turns')
    .addOption(
      new Option('--settings <settings...>', 'settings of the models; default: both, in turns').choices(
        SETTINGS,
      ),
    )
    .option('--at-least <ratio>', 'least ratio to the other checkout', ratio, 0.97)
    .option('--quick', 'one round of one second: a look, no figures')
  const flags = command.parse(argv).opts<Flags>()
  const quick = flags.quick === true
  const throughputOnly = flags.ceilings === true || flags.before !== undefined
  return {
    only: flags.only ?? (throughputOnly ? ['rest', 'grpc'] : MEASURES.filter((name) => name !== 'python')),
    rounds: quick ? 1 : flags.rounds,
    seconds: quick ? 1 : flags.seconds,
    warmUp: quick ? 1 : 2,
    repeats: quick ? 1 : 3,
    clients: [1, 32],
    ceilingsOnly: flags.ceilings === true,
    before: flags.before,
    settings: flags.settings ?? SETTINGS,
    atLeast: flags.atLeast,
  }
}

/** Parses a flag's value. @throws InvalidArgumentError */
export function wholeNumber(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= 60) return value
  throw new InvalidArgumentError('It must be a whole number from 1 to 60.')
}

function seconds(text: string): number {
  const value = Number(text)
  if (value >= 0.2 && value <= 60) return value
  throw new InvalidArgumentError('It must be a number from 0.2 to 60.')
}

function ratio(text: string): number {
  const value = Number(text)
  if (value > 0 && value <= 2) return value
  throw new InvalidArgumentError('It must be a number above 0 and at most 2.')
}

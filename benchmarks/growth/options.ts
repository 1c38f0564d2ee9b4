import { Command, InvalidArgumentError, Option } from 'commander'
import { Starter } from './servers.ts'

export const GROWTH_MEASURES = ['streams', 'models', 'workers', 'items', 'bodies', 'queue'] as const
export type GrowthMeasure = (typeof GROWTH_MEASURES)[number]

export interface GrowthOptions {
  only: readonly GrowthMeasure[]
  /** Rounds; each goes through all sizes. */
  rounds: number
  /** Seconds of load on one size in one round. */
  seconds: number
  /** Folder of another checkout, built, to measure instead of this one. */
  checkout?: string
  /** Whether to draw the plots of docs/growth. */
  draw: boolean
  starter: Starter
}

interface Flags {
  only?: GrowthMeasure[]
  rounds: number
  seconds: number
  quick?: boolean
  checkout?: string
}

/** Parses the command line. Prints help or an error and exits the process. */
export function readGrowthOptions(argv: string[]): GrowthOptions {
  const command = new Command('bench:growth')
    .description(
      'Measures what a chunk and a request cost as the server gets more to hold, and draws docs/growth. Needs Linux (/proc) and 20,000 open files.',
    )
    .addOption(new Option('--only <measures...>', 'measure these only').choices(GROWTH_MEASURES))
    .option('--rounds <n>', 'rounds; each goes through all sizes', wholeNumber, 5)
    .option('--seconds <n>', 'seconds of load on one size in one round', wholeNumber, 2)
    .option('--checkout <folder>', 'measure another checkout, built; draws no plots')
    .option('--quick', 'one round of one second: a look, no figures and no plots')
  const { only, rounds, seconds, quick = false, checkout } = command.parse(argv).opts<Flags>()
  return {
    only: only ?? GROWTH_MEASURES,
    rounds: quick ? 1 : rounds,
    seconds: quick ? 1 : seconds,
    checkout,
    draw: !quick && checkout === undefined,
    starter: new Starter(checkout),
  }
}

function wholeNumber(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= 60) return value
  throw new InvalidArgumentError('It must be a whole number from 1 to 60.')
}

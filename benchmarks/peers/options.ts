import { Command, InvalidArgumentError, Option } from 'commander'
import { CACHE } from './cache.ts'
import { PEERS } from '../targets/peers/index.ts'

export const PEER_MEASURES = ['load', 'workers', 'idle', 'batches'] as const
export type PeerMeasure = (typeof PEER_MEASURES)[number]

export interface PeerOptions {
  /** Names of the peers. */
  only: readonly string[]
  measures: readonly PeerMeasure[]
  rounds: number
  /** Seconds of one burst of load. */
  seconds: number
  /** Seconds of load before the first round. */
  warmUp: number
  clients: number
  /** Idle streams per server. */
  streams: number
  /** Requests for the time to the first chunk, in each round. */
  samples: number
  /** File for the raw data; absent: benchmarks/results/peers-<time>.json. */
  output?: string
  /** Raw data of a run: print its tables, measure nothing. */
  tables?: string
}

interface Flags {
  only?: string[]
  measures?: PeerMeasure[]
  rounds: number
  seconds: number
  clients: number
  streams: number
  quick?: boolean
  output?: string
  tables?: string
}

/** Parses the command line. Prints help or an error and exits the process. */
export function readPeerOptions(argv: string[]): PeerOptions {
  const names = PEERS.map(({ name }) => name)
  const command = new Command('bench:peers')
    .description('Measures torchserve-ts beside other model servers, in turns. Needs Linux (/proc).')
    .addOption(new Option('--only <peers...>', 'compare with these only').choices(names))
    .addOption(new Option('--measures <measures...>', 'measure these only').choices(PEER_MEASURES))
    .option('--rounds <n>', 'rounds of each comparison', wholeNumber, 5)
    .option('--seconds <n>', 'seconds of one burst of load', wholeNumber, 1)
    .option('--clients <n>', 'connections of the load', wholeNumber, 32)
    .option('--streams <n>', 'idle streams per server', wholeNumber, 500)
    .option('--output <file>', 'file for the raw data; default: benchmarks/results/peers-<time>.json')
    .option(
      '--tables <file>',
      'print the tables of docs/internals/peers.md from raw data, and measure nothing',
    )
    .option('--quick', 'one round of one second: a look, no figures')
    .addHelpText('after', `\nPeers are installed once, in ${CACHE}.`)
  const flags = command.parse(argv).opts<Flags>()
  const quick = flags.quick === true
  return {
    only: flags.only ?? names,
    measures: flags.measures ?? PEER_MEASURES,
    rounds: quick ? 1 : flags.rounds,
    seconds: quick ? 1 : flags.seconds,
    warmUp: quick ? 1 : 2,
    clients: flags.clients,
    streams: flags.streams,
    samples: 20,
    output: flags.output,
    tables: flags.tables,
  }
}

function wholeNumber(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= 1000) return value
  throw new InvalidArgumentError('It must be a whole number from 1 to 1000.')
}

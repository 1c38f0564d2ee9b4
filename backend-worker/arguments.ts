import { parseArgs } from 'node:util'
import type { Rank } from './model.ts'

const DEFAULT_MAX_FRAME_BYTES = 64 * 1024 * 1024

/** Where the worker listens: a Unix socket or a TCP port. */
export type WorkerAddress = { readonly path: string } | { readonly host: string; readonly port: number }

export interface WorkerArguments {
  readonly address: WorkerAddress
  /** Maximum frame size in bytes that the frontend may send. Default 64 MiB. */
  readonly maxFrameBytes: number
}

/** @throws Error with one sentence when the command line is not valid */
export function parseArguments(args: readonly string[]): WorkerArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      'sock-type': { type: 'string', default: 'unix' },
      'sock-name': { type: 'string' },
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string' },
      'max-frame-bytes': { type: 'string' },
    },
  })
  const maxFrameBytes = wholeNumber('--max-frame-bytes', values['max-frame-bytes'], 2 ** 32 - 1)
  return {
    address: addressOf(values['sock-type'], values['sock-name'], values.host, values.port),
    maxFrameBytes: maxFrameBytes ?? DEFAULT_MAX_FRAME_BYTES,
  }
}

/** RANK, LOCAL_RANK and WORLD_SIZE, as torchrun sets them. Without them: a group of one. */
export function rankFrom(env: NodeJS.ProcessEnv): Rank {
  const rank = wholeNumber('RANK', env['RANK'])
  const localRank = wholeNumber('LOCAL_RANK', env['LOCAL_RANK'])
  return {
    rank: rank ?? localRank ?? 0,
    localRank: localRank ?? rank ?? 0,
    worldSize: wholeNumber('WORLD_SIZE', env['WORLD_SIZE']) ?? 1,
  }
}

function addressOf(
  type: string,
  path: string | undefined,
  host: string,
  port: string | undefined,
): WorkerAddress {
  if (type === 'unix') {
    if (path === undefined) throw new Error('--sock-type unix needs --sock-name')
    return { path }
  }
  if (type !== 'tcp') throw new Error(`--sock-type must be unix or tcp, not ${type}`)
  const number = wholeNumber('--port', port, 65_535)
  if (number === undefined) throw new Error('--sock-type tcp needs --port')
  return { host, port: number }
}

function wholeNumber(
  name: string,
  text: string | undefined,
  max = Number.MAX_SAFE_INTEGER,
): number | undefined {
  if (text === undefined) return undefined
  const number = Number(text)
  if (/^\d+$/.test(text) && number <= max) return number
  throw new Error(`${name} must be a whole number up to ${max}, not ${text}`)
}

import { headerLine } from '../../../common/headers.ts'
import type { PredictRequest } from '../../../protocol/messages.ts'

/** A line `describe`, or `explain` with a value other than False, at any position. */
const SUSPECT = /(?<![^\n])(?:describe\n|explain\n(?!False\n))/

/**
 * The headers for TorchServe's worker. Its handlers read from `explain` and `describe` which method to call
 * (ts/torch_handler/base_handler.py), so only the server may set these, not the client.
 */
export function truthfulHeaders({ headers, method }: Pick<PredictRequest, 'headers' | 'method'>): string {
  if (!SUSPECT.test(headers)) return headers
  let lines = ''
  const pieces = headers.split('\n')
  for (let i = 0; i + 1 < pieces.length; i += 2) {
    const name = pieces[i]!
    const value = pieces[i + 1]!
    if (!isLie(name, value, method)) lines += headerLine(name, value)
  }
  return lines
}

function isLie(name: string, value: string, method: PredictRequest['method']): boolean {
  if (name === 'describe') return method !== 'describe'
  return name === 'explain' && method !== 'explain' && value !== 'False'
}

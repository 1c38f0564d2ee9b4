import { headerLine } from '../../../common/header-lines.ts'
import type { PredictRequest } from '../../../protocol/messages.ts'

/** A line `describe`, or `explain` with another value than False, wherever it stands. */
const SUSPECT = /(?<![^\n])(?:describe\n|explain\n(?!False\n))/

/**
 * The headers for TorchServe's worker, whose handlers read in `explain` and `describe` which of their methods is wanted
 * (ts/torch_handler/base_handler.py): only the method of the request may say so, no client.
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

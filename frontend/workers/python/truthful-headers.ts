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
    const lies =
      name === 'describe' ? method !== 'describe' : name === 'explain' && method !== 'explain'
    if (!lies) lines += headerLine(name, pieces[i + 1]!)
  }
  return lines
}

import { headerLine } from '../../common/header-lines.ts'
import type { InferenceRequest } from '../jobs/job.ts'

/**
 * The headers as a handler sees them: the client's, and behind them those by which TorchServe tells a handler what was asked. Of a
 * repeated name the last value counts, so a client's header of the same name does not.
 */
export function handlerHeaders(
  request: Pick<InferenceRequest, 'headers' | 'method' | 'urlPath' | 'tellsExplain'>,
): string {
  const { headers, method, urlPath } = request
  let lines = headers
  if (urlPath !== undefined) lines += headerLine('url_path', urlPath)
  if (method === 'explain') lines += 'explain\nTrue\n'
  else if (request.tellsExplain === true) lines += 'explain\nFalse\n'
  if (method === 'describe') lines += 'describe\nTrue\n'
  return lines
}

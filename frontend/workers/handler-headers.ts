import { headerLine } from '../../common/header-lines.ts'
import type { JobRequest } from '../jobs/job.ts'

/**
 * The headers for the handler: the client's, then those with which TorchServe tells a handler what is asked.
 * The last value of a repeated name wins, so a client cannot override them.
 */
export function handlerHeaders(
  request: Pick<JobRequest, 'headers' | 'method' | 'urlPath' | 'tellsExplain'>,
): string {
  const { headers, method, urlPath } = request
  let lines = headers
  if (urlPath !== undefined) lines += headerLine('url_path', urlPath)
  if (method === 'explain') lines += 'explain\nTrue\n'
  else if (request.tellsExplain === true) lines += 'explain\nFalse\n'
  if (method === 'describe') lines += 'describe\nTrue\n'
  return lines
}

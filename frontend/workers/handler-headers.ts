import { headerLine, splitHeaders } from '../../common/headers.ts'
import type { JobRequest } from '../jobs/job-request.ts'

const NONE: ReadonlySet<string> = new Set()

/**
 * The headers for the handler: the client's, then those with which TorchServe tells a handler what is asked.
 * The last value of a repeated name wins, so a client cannot override them.
 * @param asked headers with credentials that the model asks for, in lower case; default: none
 */
export function handlerHeaders(
  request: Pick<JobRequest, 'headers' | 'credentials' | 'method' | 'urlPath' | 'tellsExplain'>,
  asked: ReadonlySet<string> = NONE,
): string {
  const { headers, credentials, method, urlPath } = request
  let lines = headers
  if (credentials !== undefined && asked.size > 0) lines += askedFor(credentials, asked)
  if (urlPath !== undefined) lines += headerLine('url_path', urlPath)
  if (method === 'explain') lines += 'explain\nTrue\n'
  else if (request.tellsExplain === true) lines += 'explain\nFalse\n'
  if (method === 'describe') lines += 'describe\nTrue\n'
  return lines
}

function askedFor(credentials: string, asked: ReadonlySet<string>): string {
  let lines = ''
  for (const [name, value] of Object.entries(splitHeaders(credentials))) {
    if (asked.has(name.toLowerCase())) lines += headerLine(name, value)
  }
  return lines
}

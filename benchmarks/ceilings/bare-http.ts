import type { ServerResponse } from 'node:http'
import { framed, openStream, serve, whole } from './http.ts'
import { ECHO, IDLE_BODY, STREAM_ITEMS } from './workload.ts'

/** Ceiling (a): node:http alone, one process. The idle stream is for the memory measure. */

function stream(response: ServerResponse): void {
  openStream(response)
  let chunks = ''
  for (const item of STREAM_ITEMS) chunks += framed(item)
  response.socket!.write(chunks, 'latin1')
  response.end()
}

function idle(response: ServerResponse): void {
  openStream(response)
  response.write(STREAM_ITEMS[0]!, 'latin1')
  response.socket!.uncork()
}

serve((request, response, body) => {
  if (request.url!.endsWith(ECHO)) whole(response, body.toString('latin1'))
  else if (body.length === IDLE_BODY.length) idle(response)
  else stream(response)
})

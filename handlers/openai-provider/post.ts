import { request as plain, type IncomingMessage } from 'node:http'
import { request as secure } from 'node:https'

interface Post {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Milliseconds without a byte in either direction until the request fails; 0: no limit. */
  readonly silenceMs: number
  readonly signal: AbortSignal
}

/**
 * Sends a POST request; resolves with the head of the response, whose body fails as the request does. It does
 * not follow redirects. It does not use fetch, which ends every response whose head or next byte takes longer
 * than five minutes (headersTimeout and bodyTimeout of undici), and Node exports nothing that changes these.
 */
export function post(url: string, { headers, body, silenceMs, signal }: Post): Promise<IncomingMessage> {
  const send = url.startsWith('https:') ? secure : plain
  return new Promise((resolve, reject) => {
    const request = send(url, { method: 'POST', headers, signal, timeout: silenceMs })
    let response: IncomingMessage | undefined
    request.on('timeout', () => {
      const error = new Error(`no byte for ${silenceMs / 1_000} s`)
      if (response === undefined) request.destroy(error)
      else response.destroy(error)
    })
    request.on('response', (head) => {
      response = head
      resolve(head)
    })
    request.on('error', reject)
    request.end(body)
  })
}

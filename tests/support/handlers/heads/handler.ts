import type { Context, HandlerRequest } from 'torchserve-ts'

interface Head {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly text?: string
}

/** Answers as the request says, which is JSON. */
export function handle(requests: HandlerRequest[], context: Context): string[] {
  return requests.map(({ body, data }, index) => {
    const given = body ?? data
    const json = given instanceof Uint8Array ? new TextDecoder().decode(given) : given
    const head = (typeof json === 'string' ? JSON.parse(json) : json) as Head
    context.setResponseStatus(index, head.status ?? 200)
    for (const [name, value] of Object.entries(head.headers ?? {}))
      context.setResponseHeader(index, name, value)
    return head.text ?? ''
  })
}

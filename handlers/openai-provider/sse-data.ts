/** Limit of one event in characters; larger than any event of a chat. */
const MAX_EVENT_CHARACTERS = 16 * 1024 * 1024

/**
 * The data of each Server-Sent Event, without comments and other fields.
 * @throws Error for an event over the limit
 */
export async function* sseData(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  let data: string[] = []
  for await (const bytes of body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop()!
    if (rest.length > MAX_EVENT_CHARACTERS)
      throw new Error(`An event of the provider must have at most ${MAX_EVENT_CHARACTERS} characters`)
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(line.startsWith('data: ') ? 6 : 5))
      if (line !== '' || data.length === 0) continue
      yield data.join('\n')
      data = []
    }
  }
  if (rest.startsWith('data:')) data.push(rest.slice(5).trimStart())
  if (data.length > 0) yield data.join('\n')
}

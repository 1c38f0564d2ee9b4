type Json = Record<string, unknown>
type Reader = () => (piece: string) => string[]

/** The content of an event or of a unary response; undefined: none. */
type TextOf = (value: Json) => string | undefined

/** The items of an event stream (`data:` lines). Throws the error that an event contains. */
export function events(textOf: TextOf): Reader {
  return () => {
    let rest = ''
    return (piece) => {
      const complete = (rest + piece).split('\n\n')
      rest = complete.pop()!
      return complete.flatMap((event) => {
        if (!event.startsWith('data: ') || event === 'data: [DONE]') return []
        const value = JSON.parse(event.slice(6)) as Json
        if (value['error'] !== undefined) throw new Error(JSON.stringify(value['error']))
        return textOf(value) || []
      })
    }
  }
}

/** The only item of a JSON object, which is complete when it can be parsed. */
export function json(textOf: TextOf): Reader {
  return () => {
    let all = ''
    return (piece) => {
      all += piece
      const text = textOf(parsed(all) ?? {})
      return text ? [text] : []
    }
  }
}

/** Lines, and a last object without a newline (a progress report). */
export const lines: Reader = () => {
  let rest = ''
  return (piece) => {
    if (rest === '' && piece.startsWith('{')) return [piece]
    const complete = (rest + piece).split('\n')
    rest = complete.pop()!
    return complete
  }
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

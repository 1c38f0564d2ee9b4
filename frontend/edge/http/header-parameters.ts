/** A parameter of a header: `; name=token`, or a quoted text, which may have a backslash before a quote. */
const PARAMETER = /;[ \t]*([^\s=;"]+?)(\*?)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\[^])*)"|([^\s;"]*))/y
/** What stands between parameters, such as what is no parameter. */
const NEXT = /[^;]*/y

/**
 * The value of a parameter of a header such as Content-Disposition (RFC 9110, 5.6.6); the first one counts.
 * `name*=UTF-8''...` is decoded (RFC 8187). Undefined: the header has none, or it cannot be decoded.
 */
export function parameterOf(header: string, name: string): string | undefined {
  NEXT.lastIndex = 0
  for (;;) {
    NEXT.exec(header)
    const at = NEXT.lastIndex
    if (at >= header.length) return undefined
    PARAMETER.lastIndex = at
    const [found, key, extended, quoted, token] = PARAMETER.exec(header) ?? []
    if (key?.toLowerCase() === name) {
      if (extended === '*') return decoded(token ?? '')
      return quoted === undefined ? token : quoted.replaceAll(/\\(["\\])/g, '$1')
    }
    NEXT.lastIndex = at + (found?.length ?? 1)
  }
}

function decoded(value: string): string | undefined {
  const [, text] = /^utf-8'[^']*'(.*)$/i.exec(value) ?? []
  try {
    return text === undefined ? undefined : decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** From this many digits on, a JavaScript number may not hold an integer exactly. */
const LONG = /\d{16}/

/**
 * Like JSON.parse, but integers of 16 digits or more become strings, so that no digit is lost. @throws
 * SyntaxError
 */
export function parseExactJson(text: string): unknown {
  return JSON.parse(LONG.test(text) ? quoteLongIntegers(text) : text) as unknown
}

function quoteLongIntegers(text: string): string {
  const number = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y
  let quoted = ''
  let copied = 0
  let at = 0
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === 0x22) {
      at = stringEnd(text, at + 1)
    } else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
      number.lastIndex = at
      const found = number.exec(text)?.[0] ?? '-'
      if (found.length >= 16 && /^-?\d{16,}$/.test(found)) {
        quoted += `${text.slice(copied, at)}"${found}"`
        copied = at + found.length
      }
      at += found.length
    } else {
      at += 1
    }
  }
  return quoted + text.slice(copied)
}

/** The position after the closing quote of the string that begins at `at`. */
function stringEnd(text: string, at: number): number {
  for (let i = at; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code === 0x22) return i + 1
    if (code === 0x5c) i += 1
  }
  return text.length
}

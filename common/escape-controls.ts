const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/
const ALL_CONTROLS = new RegExp(CONTROL, 'g')
/** A longer text is escaped unit by unit: `replace` takes five times as long for one that is all controls. */
const LONG = 1024

/** Escapes control characters: input must not forge log lines or send commands to a terminal. */
export function escapeControls(text: string): string {
  if (text.length > LONG && CONTROL.test(text)) return escapeLong(text)
  return text.replace(ALL_CONTROLS, escapeOf)
}

/** The same for a text of several lines, which keeps its line feeds. */
export function escapeLines(text: string): string {
  return text.split('\n').map(escapeControls).join('\n')
}

/** Characters that move text on a screen: control characters, line separators, and marks of direction. */
export const INVISIBLE = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u
const ALL_INVISIBLE = new RegExp(INVISIBLE, 'gu')

/** A client's text for messages: quoted as in JSON, at most `most` characters of it, all of them visible. */
export function quoted(text: string, most: number): string {
  return JSON.stringify(text.length > most ? `${text.slice(0, most)}…` : text).replace(
    ALL_INVISIBLE,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** `\n`, `\x1b`, `\x2028`. */
function escapeOf(letter: string): string {
  return letter === '\n' ? '\\n' : `\\x${letter.charCodeAt(0).toString(16).padStart(2, '0')}`
}

/** For each unit of UTF-16 how many stand for it. */
const LENGTHS = new Uint8Array(65_536).fill(1)
for (const unit of [...Array(0xa0).keys(), 0x2028, 0x2029]) {
  const letter = String.fromCharCode(unit)
  if (CONTROL.test(letter)) LENGTHS[unit] = escapeOf(letter).length
}
const [BACKSLASH, X, N] = [0x5c, 0x78, 0x6e]
const DIGITS = Uint16Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0))

/** Handlers print what clients send, so no text may take long. */
function escapeLong(text: string): string {
  const bytes = Buffer.from(text, 'utf16le')
  const units = new Uint16Array(bytes.buffer, bytes.byteOffset, text.length)
  let length = 0
  for (let i = 0; i < units.length; i++) length += LENGTHS[units[i]!]!
  const escaped = new Uint16Array(length)
  let at = 0
  for (let i = 0; i < units.length; i++) {
    const unit = units[i]!
    const digits = LENGTHS[unit]! - 2
    if (digits < 0) {
      escaped[at++] = unit
      continue
    }
    escaped[at++] = BACKSLASH
    escaped[at++] = digits === 0 ? N : X
    for (let left = digits; left > 0; left--) escaped[at++] = DIGITS[(unit >> (4 * left - 4)) & 15]!
  }
  return Buffer.from(escaped.buffer).toString('utf16le')
}

/** Escapes control characters: input must not forge log lines or send commands to a terminal. */
export function escapeControls(text: string): string {
  return text.replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/g, (letter) =>
    letter === '\n' ? '\\n' : `\\x${letter.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/** Longest text of a JSON line, in characters; the rest of it is cut off. */
const MAX_TEXT = 2_000

/**
 * One line of JSON lines, with its line end. JSON escapes only what is below a blank; everything else that
 * ends a line somewhere or moves a terminal's cursor is escaped too.
 */
export function jsonLine(value: object): string {
  const json = JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'string' && each.length > MAX_TEXT ? `${each.slice(0, MAX_TEXT)}...` : each,
  )
  const plain = json.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `${plain}\n`
}

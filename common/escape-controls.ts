const CONTROLS = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/g

/** Escapes control characters: input must not forge log lines or send commands to a terminal. */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, escapeOf)
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

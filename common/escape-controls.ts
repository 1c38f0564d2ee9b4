/** Escapes control characters: input must not forge log lines or send commands to a terminal. */
export function escapeControls(text: string): string {
  return text.replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/g, (letter) =>
    letter === '\n' ? '\\n' : `\\x${letter.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/** The same for a text of several lines, which keeps its line feeds. */
export function escapeLines(text: string): string {
  return text.split('\n').map(escapeControls).join('\n')
}

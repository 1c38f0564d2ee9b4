/** One line `key=value` of a Java properties file, escaped as Java's Properties.store does (UTF-8). */
export function formatProperty(name: string, value: string): string {
  return `${escapeKey(name)}=${escapeValue(value)}`
}

function escapeKey(text: string): string {
  return escapeText(text).replaceAll(' ', '\\ ')
}

/** Only leading blanks need an escape. */
function escapeValue(text: string): string {
  return escapeText(text).replace(/^ /, '\\ ')
}

const NAMED: ReadonlyMap<string, string> = new Map([
  ['\t', '\\t'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\f', '\\f'],
])

function escapeText(text: string): string {
  return text.replace(/[\\=:#!]/g, '\\$&').replace(/[\u0000-\u001f\u007f-\u009f]/g, escapeControl)
}

function escapeControl(letter: string): string {
  return NAMED.get(letter) ?? `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
}

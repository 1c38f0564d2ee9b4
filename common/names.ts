import { quoted } from './escape-controls.ts'

/** The one rule for what models, versions, workflows and downloaded archives may be called. */

const MAX_NAME = 128
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}$/

/** The rule as a sentence's end, for messages and documentation. */
export const NAME_RULE =
  `have 1 to ${MAX_NAME} ASCII letters, digits and _ - . + @, start with a letter, a digit or _, ` +
  'have no two dots in a row, and not be __proto__'

/**
 * Whether a text may be the name of a model, a version or a workflow. A name that passes is one part of a
 * path on every system, needs no escaping in a URL's path, a log line or a metric's label, and is no
 * special key of an object.
 */
export function isName(text: string): boolean {
  return NAME.test(text) && !text.includes('..') && text !== '__proto__'
}

/** The items of a comma-separated list, without blanks around them. */
export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/**
 * What is wrong with a name, as a whole sentence; undefined: nothing.
 * @param what it names, at the beginning of the sentence: `Model name`
 */
export function nameProblem(what: string, text: string): string | undefined {
  return isName(text) ? undefined : `${what} ${quoted(text, 60)} must ${NAME_RULE}.`
}

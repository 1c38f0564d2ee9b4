import { isObject } from '../common/json.ts'

/**
 * Values, keys and signs that a YAML file may have, and levels. Without limits the parser takes minutes for
 * some kilobytes of closing braces, and some of opening ones end the process.
 */
const MAX_TOKENS = 10_000
const MAX_LEVELS = 64
/** From here on, errors do not show their place: that takes as long as parsing, for each error. */
const MAX_TOKENS_WITH_PLACES = 2_000

/** What the lexer puts before documents and scalars; it is not in the text. */
const MARKS: ReadonlySet<string> = new Set(['\u0002', '\u0018', '\u001f'])

interface YamlOptions {
  readonly mapAsMap?: boolean
}

/**
 * Parses YAML that strangers may have written, within time and memory in proportion to its size.
 * @throws Error for text that is not YAML, has more than 10,000 tokens or is nested deeper than 64 levels
 */
export async function parseYaml(text: string, options: YamlOptions = {}): Promise<unknown> {
  const { Lexer, parseDocument, visit } = await import('../common/yaml.ts')
  const levels = new Levels()
  let tokens = 0
  for (const token of new Lexer().lex(text)) {
    if (MARKS.has(token)) continue
    tokens += 1
    if (tokens > MAX_TOKENS) throw new Error(`it must have at most ${MAX_TOKENS} tokens`)
    if (levels.after(token) > MAX_LEVELS) throw new Error(`it must have at most ${MAX_LEVELS} levels`)
  }
  const prettyErrors = tokens <= MAX_TOKENS_WITH_PLACES
  // The parser compares each key of a map with all others, which takes half a second for 5,000.
  const document = parseDocument(text, { prettyErrors, logLevel: 'error', uniqueKeys: false })
  if (document.errors.length > 0) throw new Error(reasonOf(document.errors[0]!))
  visit(document, { Map: (_, { items }) => checkUnique(items) })
  return document.toJS({ ...options })
}

/** Without the lines with the place, which begin after a colon. */
function reasonOf({ message }: Error): string {
  return message.replace(/:?\n[^]*$/, '')
}

function checkUnique(items: readonly { readonly key: unknown }[]): void {
  const seen = new Set<unknown>()
  for (const { key } of items) {
    const value = isObject(key) && 'value' in key ? key['value'] : key
    if (seen.has(value)) throw new Error('Map keys must be unique')
    seen.add(value)
  }
}

/** Counts levels by the tokens of the lexer, which are the ones that the parser sees. */
class Levels {
  #flow = 0
  /** Columns in which open blocks began. */
  readonly #blocks: number[] = []
  #column = 0
  #atLineStart = true

  /** The level behind the token; of blocks at least half of it. */
  after(token: string): number {
    if (token === '[' || token === '{') this.#flow += 1
    else if ((token === ']' || token === '}') && this.#flow > 0) this.#flow -= 1
    const isBlank = /^\s*$/.test(token)
    if (token === '-' || token === '?' || (this.#atLineStart && !isBlank)) this.#begin()
    const end = token.lastIndexOf('\n')
    if (end >= 0) {
      this.#column = token.length - end - 1
      this.#atLineStart = true
    } else {
      this.#column += token.length
      if (!isBlank) this.#atLineStart = false
    }
    return this.#flow + this.#blocks.length
  }

  #begin(): void {
    while (this.#blocks.length > 0 && this.#blocks.at(-1)! >= this.#column) this.#blocks.pop()
    this.#blocks.push(this.#column)
  }
}

/** A tool call; the arguments are JSON. */
export interface Call {
  name: string
  arguments: string
}

/** Finds the end of a JSON object that arrives in pieces. */
export class ObjectEnd {
  #depth = 0
  #quoted = false
  #escaped = false

  /** Index behind the object's closing brace; -1: the object goes on. */
  find(piece: string, from = 0): number {
    for (let at = from; at < piece.length; at++) {
      const character = piece[at]
      if (this.#escaped) this.#escaped = false
      else if (this.#quoted && character === '\\') this.#escaped = true
      else if (character === '"') this.#quoted = !this.#quoted
      else if (this.#quoted) continue
      else if (character === '{') this.#depth++
      else if (character === '}' && --this.#depth === 0) return at + 1
    }
    return -1
  }
}

/** Begin of a call up to its arguments, which can then be sent while they are generated. */
const HEAD = /^\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)/
const FIRST_KEY = /^\{\s*(?:"([^"]*)("?))?/
/** Keys of the objects by which models call tools. */
const KEYS = ['name', 'arguments', 'parameters', 'type', 'function', 'id']

/** The name, and where the arguments begin; undefined: they do not follow the name, or not yet. */
export function headOf(object: string): { name: string; length: number } | undefined {
  const head = HEAD.exec(object)
  return head === null ? undefined : { name: head[1]!, length: head[0].length }
}

/** Whether an object that has begun is like a call; undefined: its first key is not known yet. */
export function beginsCall(object: string): boolean | undefined {
  const [begun, key, quote] = FIRST_KEY.exec(object)!
  if (quote === '"') return KEYS.includes(key!)
  const mayBecome = begun.length === object.length && KEYS.some((known) => known.startsWith(key ?? ''))
  return mayBecome ? undefined : false
}

/**
 * The call that a whole object is, whatever the order of its keys; undefined: none.
 * @param needsArguments whether an object without arguments is none
 */
export function callOf(object: string, needsArguments: boolean): Call | undefined {
  const value = objectIn(object)
  const call = objectOf(value?.['function']) ?? value ?? {}
  const { name, parameters, arguments: given = parameters } = call
  if (typeof name !== 'string' || (given === undefined && needsArguments)) return undefined
  const values = typeof given === 'string' ? given : JSON.stringify(given ?? {})
  return objectIn(values) === undefined ? undefined : { name, arguments: values }
}

function objectIn(json: string): Record<string, unknown> | undefined {
  try {
    return objectOf(JSON.parse(json))
  } catch {
    return undefined
  }
}

function objectOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}

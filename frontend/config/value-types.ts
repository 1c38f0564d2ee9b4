import { resolve } from 'node:path'
import * as z from 'zod/mini'
import { parseHost, parseListenAddress } from './listen-address.ts'
import type { ListenAddress } from './settings.ts'

/** How the text of a key becomes its value. */
export interface ValueType<T> {
  /** For the documentation: `integer`, `seconds`, ... */
  readonly label: string
  /** For errors: "expected <this>". */
  readonly expected: string
  /** Text to value. Issues with a path or of the kind `custom` explain more than `expected` does. */
  readonly schema: z.ZodMiniType<T, string>
}

/** Timers of Node count milliseconds in 31 bits; a longer wait would end at once. */
const MAX_TIMER_SECONDS = 2_147_483

/** A type whose `parse` answers undefined for text that does not fit. */
export function parsed<T>(
  label: string,
  expected: string,
  parse: (text: string) => T | undefined,
): ValueType<T> {
  const schema = z.pipe(
    z.string(),
    z.transform((text: string, context) => {
      const value = parse(text)
      if (value !== undefined) return value
      context.issues.push({ code: 'custom', message: '', input: text })
      return z.NEVER
    }),
  )
  return { label, expected, schema }
}

function numeric(shape: RegExp, min: number, max: number): z.ZodMiniType<number, string> {
  return z.pipe(
    z.pipe(
      z.string().check(z.regex(shape)),
      z.transform((text: string) => Number.parseFloat(text)),
    ),
    z.number().check(z.minimum(min), z.maximum(max)),
  )
}

export function integer(min: number, max: number): ValueType<number> {
  const expected = `a whole number from ${min} to ${max}`
  return { label: 'integer', expected, schema: numeric(/^[+-]?\d{1,15}$/, min, max) }
}

export function decimal(label: string, min: number, max: number): ValueType<number> {
  const expected = `a number of ${label} from ${min} to ${max}`
  return { label, expected, schema: numeric(/^\+?\d{1,15}(\.\d{1,9})?$/, min, max) }
}

/** A time limit that must exist. */
export const SECONDS = decimal('seconds', 0.001, MAX_TIMER_SECONDS)
/** A time limit that 0 switches off. */
export const SECONDS_OR_OFF = decimal('seconds', 0, MAX_TIMER_SECONDS)

export const BOOLEAN = parsed('boolean', 'true or false', (text) => {
  const word = text.toLowerCase()
  return word === 'true' || word === 'false' ? word === 'true' : undefined
})

export const TEXT: ValueType<string> = { label: 'text', expected: 'text', schema: z.string() }

/** An HTTP header's value, as the HTTP grammar allows it. */
export const HEADER_VALUE: ValueType<string> = {
  label: 'text',
  expected: 'a value that fits into an HTTP header',
  schema: z.string().check(z.regex(/^[\t\x20-\x7e]+$/)),
}

/** Made absolute against the working directory. */
export const PATH = parsed('path', 'a path', (text) => (text.includes('\0') ? undefined : resolve(text)))

export const HOST = parsed('host', 'a host name or an IP address', parseHost)

export const PORT = integer(0, 65535)

/** One of some words, in any letter case. */
export function word<const T extends string>(...words: T[]): ValueType<T> {
  const label = words.join(' \\| ')
  return parsed(label, `one of ${words.join(', ')}`, (text) =>
    words.find((each) => each === text.toLowerCase()),
  )
}

/** Matches whole texts only. */
export function pattern(flags: string): ValueType<RegExp> {
  return parsed('regex', 'a regular expression', (text) => wholeMatch(text, flags))
}

export function patternList(flags: string): ValueType<readonly RegExp[]> {
  return parsed('regex list', 'regular expressions, divided by commas', (text) => {
    const patterns = splitList(text).map((each) => wholeMatch(each, flags))
    return patterns.every((each) => each !== undefined) ? patterns : undefined
  })
}

export function listenAddress(httpPort: number, httpsPort: number): ValueType<ListenAddress> {
  const ports = { http: httpPort, https: httpsPort }
  return parsed('address', 'http://host:port or unix:/path', (text) => parseListenAddress(text, ports))
}

/** The items of a comma list, without blanks around them and without empty ones. */
export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

function wholeMatch(text: string, flags: string): RegExp | undefined {
  try {
    new RegExp(text, flags) // on its own first: "a)|(b" must not become valid by the group around it
    return new RegExp(`^(?:${text})$`, flags)
  } catch {
    return undefined
  }
}

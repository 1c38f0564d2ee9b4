import { resolve } from 'node:path'
import { splitList } from '../../common/names.ts'
import { MAX_TIMER_MS } from '../../common/timer.ts'
import { parseHost, parseListenAddress } from './listen-address.ts'
import type { ListenAddress } from './listen-address.ts'

/** How the text of a key becomes its value. */
export interface ValueType<T> {
  /** For the documentation: `integer`, `seconds`, ... */
  readonly label: string
  /** Completes "must be ". */
  readonly expected: string
  /**
   * The value; undefined if the text is invalid. `explain` takes details that `expected` does not cover, and
   * `warn` what has no effect.
   */
  parse(text: string, explain: (why: string) => void, warn: (what: string) => void): T | undefined
}

/** The largest whole number of most keys, as in TorchServe. */
export const INT_MAX = 2_147_483_647
/** The longest time that a key may set: what a timer can count, in whole seconds. */
export const MAX_TIMER_SECONDS = Math.floor(MAX_TIMER_MS / 1000)

export function parsed<T>(
  label: string,
  expected: string,
  parse: (text: string) => T | undefined,
): ValueType<T> {
  return { label, expected, parse }
}

export function integer(min: number, max: number): ValueType<number> {
  return numeric('integer', `a whole number from ${min} to ${max}`, /^[+-]?\d{1,16}$/, min, max)
}

export function decimal(label: string, min: number, max: number): ValueType<number> {
  const expected = `a number of ${label} from ${min} to ${max}`
  return numeric(label, expected, /^\+?\d{1,15}(\.\d{1,9})?$/, min, max)
}

function numeric(
  label: string,
  expected: string,
  shape: RegExp,
  min: number,
  max: number,
): ValueType<number> {
  return parsed(label, expected, (text) => {
    const value = shape.test(text) ? Number.parseFloat(text) : NaN
    return value >= min && value <= max ? value : undefined
  })
}

/** A time limit that cannot be switched off. */
export const SECONDS = decimal('seconds', 0.001, MAX_TIMER_SECONDS)
/** A time limit; 0 disables it. */
export const SECONDS_OR_OFF = decimal('seconds', 0, MAX_TIMER_SECONDS)

export const BOOLEAN = parsed('boolean', 'true or false', (text) => {
  const word = text.toLowerCase()
  return word === 'true' || word === 'false' ? word === 'true' : undefined
})

/** TorchServe's switch for the Open Inference Protocol: `true` or `oip`; any other text disables it. */
export const OPEN_INFERENCE = parsed('oip | boolean', 'oip, true or false', (text) =>
  ['oip', 'true'].includes(text.toLowerCase()),
)

export const TEXT = parsed('text', 'text', (text) => text)

/** A value that the HTTP grammar allows in a header. */
export const HEADER_VALUE = parsed('text', 'a valid value of an HTTP header', (text) =>
  /^[\t\x20-\x7e]+$/.test(text) ? text : undefined,
)

export const HEADER_NAME = parsed('header name', 'a valid name of an HTTP header', (text) =>
  /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/.test(text) ? text : undefined,
)

/** A path, resolved against the working directory. */
export const PATH = parsed('path', 'a path', (text) => (text.includes('\0') ? undefined : resolve(text)))

/** A command to find on PATH, or a path (it contains a slash), resolved against the working directory. */
export const COMMAND = parsed('command', 'a command or a path', (text) => {
  if (text === '' || text.includes('\0')) return undefined
  return /[\\/]/.test(text) ? resolve(text) : text
})

export const HOST = parsed('host', 'a host name or an IP address', parseHost)

export const PORT = integer(0, 65535)

/** One of the given words, in any letter case. */
export function word<const T extends string>(...words: T[]): ValueType<T> {
  const label = words.join(' | ')
  return parsed(label, `one of ${words.join(', ')}`, (text) =>
    words.find((each) => each === text.toLowerCase()),
  )
}

/** A comma-separated list of the given words, in any letter case; `none` for an empty list. */
export function wordList<const T extends string>(...words: T[]): ValueType<readonly T[]> {
  return parsed('list', `none, or a comma-separated list of ${words.join(', ')}`, (text) => {
    if (text.toLowerCase() === 'none') return []
    const found = splitList(text).map((item) => words.find((each) => each === item.toLowerCase()))
    return found.every((each) => each !== undefined) ? found : undefined
  })
}

/** A regular expression that must match the whole text. */
export function pattern(flags: string): ValueType<RegExp> {
  return parsed('regex', 'a regular expression', (text) => wholeMatch(text, flags))
}

export function patternList(flags: string): ValueType<readonly RegExp[]> {
  return parsed('regex list', 'a comma-separated list of regular expressions', (text) => {
    const patterns = splitList(text).map((each) => wholeMatch(each, flags))
    return patterns.every((each) => each !== undefined) ? patterns : undefined
  })
}

/** Whether OpenSSL knows the suites is told when a listener opens. */
export const CIPHERS = parsed('cipher list', 'names of OpenSSL, divided by colons', (text) =>
  /^[A-Za-z0-9_:+!@=.-]{1,4096}$/.test(text) ? text : undefined,
)

/** Origins of a URL: `host[:port]` stands for `https://host[:port]`. */
export const ORIGIN_LIST = parsed<readonly string[]>(
  'host list',
  'hosts, each host[:port] or http://host[:port]',
  (text) => {
    const origins = splitList(text).map((item) => {
      const url = /^https?:\/\//i.test(item) ? item : `https://${item}`
      const { origin, href } = URL.canParse(url) ? new URL(url) : { origin: '', href: undefined }
      return href === `${origin}/` && !item.endsWith('/') ? origin : undefined
    })
    return origins.every((each) => each !== undefined) ? origins : undefined
  },
)

/** Host names in lower case; `*.` before a name stands for all below it, `*` for any. */
export const HOST_LIST = parsed<readonly string[]>('host list', 'host names, *.name or *', (text) => {
  const names = splitList(text.toLowerCase())
  return names.every((name) => /^(\*|(\*\.)?[a-z0-9_][a-z0-9._-]{0,252})$/.test(name)) ? names : undefined
})

export function listenAddress(httpPort: number, httpsPort: number): ValueType<ListenAddress> {
  const ports = { http: httpPort, https: httpsPort }
  return parsed('address', 'http://host:port, https://host:port or unix:/path', (text) =>
    parseListenAddress(text, ports),
  )
}

function wholeMatch(text: string, flags: string): RegExp | undefined {
  try {
    new RegExp(text, flags) // checked without the group, which would make "a)|(b" valid
    return new RegExp(`^(?:${text})$`, flags)
  } catch {
    return undefined
  }
}

import { toUSVString } from 'node:util'

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

/** Which parts of an address are secrets, for everything that shows, logs or keeps one. */

const HIDDEN = '***'

/**
 * Names of query parameters that carry a password, a key or a signature: those of S3 (X-Amz-Signature,
 * X-Amz-Credential, X-Amz-Security-Token, AWSAccessKeyId), Google Cloud Storage (X-Goog-Signature,
 * GoogleAccessId), Azure (sig), CloudFront (Signature, Key-Pair-Id, Policy), and common names of others.
 */
const SECRET_PARAM =
  /sig|token(?!s)|secret|pass|pwd|credential|auth|key|accessid|policy|jwt|session|cookie|^(code|sas|pw|pin)$/i

/** Enough for an address in a parameter of an address in a parameter of a request. */
const MAX_DEPTH = 3

/**
 * Removes the secrets of the addresses in a text: `user:password@` becomes `***@`, and the value of a secret
 * query parameter or a fragment `***`,
 * also in an address that is the value of a parameter, percent-encoded or not. Text
 * without secrets stays unchanged. Takes time in proportion to the text.
 */
export function redactSecrets(text: string, depth = 0): string {
  if (!MAY_HOLD_SECRETS.test(text)) return text
  return withoutFragments(withoutUserInfo(withoutParams(text, depth)))
}

/**
 * Returns an address of a model as it may be shown and kept. Escapes its blanks first, as an HTTP client
 * does: a blank would end a secret.
 */
export function redactUrl(url: string, depth = 0): string {
  const escaped = /^https?:/i.test(url) ? url.replace(/[\t\n\r]/g, '').replace(/\s/g, '%20') : url
  const shown = redactSecrets(escaped, depth)
  return shown === escaped ? url : shown
}

/** Skips plain names and paths, the usual case, at the cost of one test. */
const MAY_HOLD_SECRETS = /[=@#]|%40|%3d|%23/i

/**
 * Looks at runs between the signs that end an authority (WHATWG URL Standard): user and password end at the
 * last @ of the first run after the scheme.
 */
function withoutUserInfo(text: string): string {
  if (!text.includes('@')) return text
  return text.replace(/[^/?#\\\n]+/g, (run: string, at: number) => {
    const end = run.lastIndexOf('@')
    if (end <= 0) return run
    if (/[/:\\][/\\]$/.test(text.slice(Math.max(0, at - 2), at))) return HIDDEN + run.slice(end)
    // Special schemes need no slashes.
    const scheme = /^(?:.{0,200}[^a-z])?https?:/is.exec(run.slice(0, Math.min(end, 220)))
    return scheme === null ? run : scheme[0] + HIDDEN + run.slice(end)
  })
}

/** No server sees the fragment of an address, so nothing in it is worth showing. */
function withoutFragments(text: string): string {
  const at = text.indexOf('://')
  if (at < 0 || !text.includes('#', at)) return text
  return text.slice(0, at) + text.slice(at).replace(/#[^\s"'#]+/g, `#${HIDDEN}`)
}

/** `name=value` behind `?`, `&`, `;` or `#`, up to the next of them or a blank. */
function withoutParams(text: string, depth: number): string {
  return text.replace(
    /([?&;#])([^=?&;#\s]{1,200})=([^&;#\s]*)/g,
    (whole, sign, name: string, value: string) => {
      if (value === '') return whole
      const plainName = decoded(name) ?? name
      if (SECRET_PARAM.test(plainName)) return `${sign as string}${name}=${HIDDEN}`
      const shown = redactedValue(value, depth)
      return shown === value ? whole : `${sign as string}${name}=${shown}`
    },
  )
}

function redactedValue(value: string, depth: number): string {
  if (depth >= MAX_DEPTH) return value
  const asIs = redactSecrets(value, depth + 1)
  if (asIs !== value || !value.includes('%')) return asIs
  const plain = decoded(value)
  if (plain === undefined || plain === value) return value
  const shown = redactUrl(plain, depth + 1)
  return shown === plain ? value : encodeURIComponent(shown).replaceAll('%2A', '*')
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

/**
 * The half of a character at the end of the text, which is a high surrogate, or ''. Code that cuts strings by
 * their length, and some tokenizers, end there.
 */
export function halfAtEnd(text: string): string {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : ''
}

/** Whether the text has no half of a character, and so a form in UTF-8. */
export function isWellFormed(text: string): boolean {
  return toUSVString(text) === text
}

/** Texts that arrive in pieces, by name: half a character at the end of a piece waits for the next one. */
export class WholeTexts<Name> {
  readonly #halves = new Map<Name, string>()

  get waits(): boolean {
    return this.#halves.size > 0
  }

  /** The piece with the half that waited, and without the half at its end. Other halves become U+FFFD. */
  next(name: Name, piece: string): string {
    const text = (this.#halves.get(name) ?? '') + piece
    const half = halfAtEnd(text)
    if (half === '') this.#halves.delete(name)
    else this.#halves.set(name, half)
    return toUSVString(text.slice(0, text.length - half.length))
  }

  /** Takes what waits for a next piece that does not come, each U+FFFD. */
  end(): [Name, string][] {
    const rest = [...this.#halves.keys()].map((name): [Name, string] => [name, '\ufffd'])
    this.#halves.clear()
    return rest
  }
}

/** What to do about packages that a handler imports. */
export function notInstalled(names: readonly string[]): string {
  const [what, is, them] = names.length === 1 ? ['package', 'is', 'it'] : ['packages', 'are', 'them']
  return `The ${what} ${names.join(' and ')} ${is} not installed. Install ${them} where torchserve-ts is installed: npm install ${names.join(' ')}`
}

/** Pieces of GBNF, llama.cpp's language of grammars. Each function returns a sequence without a bare `|`. */

/** More repetitions cost llama.cpp too many rules. */
export const MAX_COUNT = 1_000

/** Rules that every grammar of JSON has. One space at most: small models would write spaces endlessly. */
export const JSON_RULES = String.raw`
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" (string colon value (sep string colon value)*)? "}"
array ::= "[" (value (sep value)*)? "]"
string ::= "\"" char* "\""
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" hex hex hex hex)
plain ::= [^"\\\x7F\x00-\x1F]
hex ::= [0-9a-fA-F]
number ::= integer fraction? ([eE] [-+]? [0-9]{1,2})?
integer ::= "-"? ("0" | [1-9] [0-9]{0,14})
fraction ::= "." [0-9]{1,15}
sep ::= "," " "?
colon ::= ":" " "?
label ::= [a-z0-9] ([a-z0-9-]{0,30} [a-z0-9])?
octet ::= "25" [0-5] | "2" [0-4] [0-9] | "1" [0-9] [0-9] | [1-9]? [0-9]
year ::= [1-9] [0-9] [0-9] [0-9]
leap-year ::= [1-9] [0-9] ("0" [48] | [2468] [048] | [13579] [26])
day ::= "0" [1-9] | "1" [0-9] | "2" [0-8]
long-month ::= "0" [13578] | "10" | "12"
month ::= "0" [13-9] | "1" [0-2]
date ::= year "-" ("02" | month) "-" day | year "-" month "-" ("29" | "30") | year "-" long-month "-31" | leap-year "-02-29"
hour ::= [01] [0-9] | "2" [0-3]
minute ::= [0-5] [0-9]
time ::= hour ":" minute ":" minute ("." [0-9]{1,6})? ("Z" | [+-] hour ":" minute)
`

/** Texts of each format of JSON Schema, without the quotes. None has more than 254 characters. */
export const FORMATS: ReadonlyMap<unknown, string> = new Map([
  ['date', 'date'],
  ['time', 'time'],
  ['date-time', 'date "T" time'],
  ['uuid', 'hex{8} "-" hex{4} "-" hex{4} "-" hex{4} "-" hex{12}'],
  ['email', '[a-z0-9] ([a-z0-9._+-]{0,60} [a-z0-9])? "@" label ("." label){0,2} "." [a-z]{2,12}'],
  ['hostname', 'label ("." label){0,4}'],
  ['ipv4', 'octet "." octet "." octet "." octet'],
  ['uri', '"http" "s"? "://" label ("." label){0,3} ("/" [a-zA-Z0-9._~/?=&%#+-]{0,100})?'],
])

export function literal(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`
}

export function union(alternatives: readonly string[]): string {
  return alternatives.length === 1 ? alternatives[0]! : `(${alternatives.join(' | ')})`
}

/** A rule so many times. @param max Infinity: any number */
export function times(rule: string, min: number, max: number): string {
  if (max === 0) return ''
  return `(${rule}){${min},${max === Infinity ? '' : max}}`
}

/** A list of items with separators. */
export function list(item: string, min: number, max: number): string {
  if (max === 0) return ''
  const some = `${item} ${times(`sep ${item}`, Math.max(0, min - 1), max - 1)}`
  return min > 0 ? some : `(${some})?`
}

/** A string that is none of these names. */
export function otherString(names: readonly string[]): string {
  return String.raw`"\"" ${notIn(names.filter((name) => !JSON.stringify(name).includes('\\')))} "\""`
}

/** Characters that together are none of the texts: for each first character, not in what may follow it. */
function notIn(texts: readonly string[]): string {
  const rests = new Map<string, string[]>()
  for (const [first, ...rest] of texts) {
    if (first !== undefined) rests.set(first, [...(rests.get(first) ?? []), rest.join('')])
  }
  if (rests.size === 0) return texts.length === 0 ? 'plain*' : 'plain+'
  const firsts = [...rests.keys()].map((first) => {
    return String.raw`\U${first.codePointAt(0)!.toString(16).padStart(8, '0')}`
  })
  const same = [...rests].map(([first, more]) => `${literal(first)} ${notIn(more)}`)
  const other = String.raw`[^"\\\x7F\x00-\x1F${firsts.join('')}] plain*`
  return `(${[...same, other].join(' | ')})${texts.includes('') ? '' : '?'}`
}

/** Limits of a number; undefined: none. */
export interface Bounds {
  min: number
  max: number
  /** Whether the limit itself is excluded. */
  openMin: boolean
  openMax: boolean
}

/** Whole numbers within bounds. Undefined: there are none. */
export function integers({ min, max, openMin, openMax }: Bounds): string | undefined {
  const from = openMin ? Math.floor(min) + 1 : Math.ceil(min)
  const to = openMax ? Math.ceil(max) - 1 : Math.floor(max)
  if (from > to) return undefined
  const parts: string[] = []
  if (to >= 0) parts.push(naturals(Math.max(0, from), to))
  if (from < 0) parts.push(`"-" ${naturals(Math.max(1, -to), -from)}`)
  return union(parts)
}

/** Numbers within bounds that are whole numbers. Undefined: there are none. */
export function numbers({ min, max, openMin, openMax }: Bounds): string | undefined {
  const parts = [
    ...(max >= 0 ? magnitudes(Math.max(0, min), max, openMin && min >= 0, openMax) : []),
    ...(min < 0
      ? magnitudes(Math.max(0, -max), -min, openMax && max <= 0, openMin).map((part) => `"-" ${part}`)
      : []),
  ]
  return parts.length === 0 ? undefined : union(parts)
}

/** Numbers without a sign. */
function magnitudes(from: number, to: number, openFrom: boolean, openTo: boolean): string[] {
  const first = openFrom ? from + 1 : from
  const parts: string[] = []
  if (first < to) parts.push(`${naturals(first, to - 1)} fraction?`)
  if (openFrom && from < to) parts.push(`"${from}." [0-9]{0,14} [1-9]`)
  if (!openTo && first <= to) parts.push(`"${to}" ("." "0"{1,15})?`)
  return parts
}

/** Digits of the whole numbers from one to another. */
function naturals(from: number, to: number): string {
  const [low, high] = [String(from), String(to)]
  const parts: string[] = []
  for (let { length } = low; length <= high.length; length++) {
    const least = length === low.length ? low : `1${'0'.repeat(length - 1)}`
    parts.push(between(least, length === high.length ? high : '9'.repeat(length)))
  }
  return union(parts)
}

/** Numbers of the same length. */
function between(low: string, high: string): string {
  if (low === '') return ''
  const [first, last, rest] = [Number(low[0]), Number(high[0]), low.length - 1]
  const any = rest === 0 ? '' : ` [0-9]{${rest}}`
  const [zeros, nines] = ['0'.repeat(rest), '9'.repeat(rest)]
  if (low.slice(1) === zeros && high.slice(1) === nines) return `[${first}-${last}]${any}`
  if (first === last) return `"${first}" ${between(low.slice(1), high.slice(1))}`
  const middle = last - first > 1 ? [`[${first + 1}-${last - 1}]${any}`] : []
  return union([between(low, `${first}${nines}`), ...middle, between(`${last}${zeros}`, high)])
}

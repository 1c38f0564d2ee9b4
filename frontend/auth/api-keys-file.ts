import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import type * as Zod from 'zod/mini'
import { ServeError } from '../../common/errors.ts'
import { issueText } from '../../common/json.ts'
import { type Grant, managesAll, SCOPES } from './principal.ts'

/** Largest keys file, in characters. */
const MAX_KEYS_FILE = 4_194_304
const MAX_ENTRIES = 10_000
const NAME = /^[A-Za-z0-9][\w.@:-]{0,99}$/
const NOT_EMPTY = 'must not be empty'
const POSITIVE = 'must be a number above 0'
const WHOLE = 'must be a whole number of at least 1'
const MANAGES_SOME =
  'must not be set with the scope management, which is for all models: use another key for some models'
const TOO_MANY = 'must have at most 10000 entries'

/** The content of a keys file (docs/authorization.md). */
export type ApiKeysFile = Zod.output<ReturnType<typeof makeSchema>>
/** One API key. */
export type ApiKeyEntry = ApiKeysFile['keys'][number]
/** A client certificate that has rights. */
export type CertificateEntry = ApiKeysFile['client_certificates'][number]

/** @throws ServeError CONFIG: one line with the place in the file and the problem, never a part of a key */
export function parseApiKeys(path: string, text: string): ApiKeysFile {
  const problem = (why: string, cause?: unknown): ServeError =>
    new ServeError('CONFIG', `The keys file ${path} cannot be used: ${why}`, { cause })
  if (text.length > MAX_KEYS_FILE) throw problem('it is larger than 4 MiB')
  const requireOnDemand = createRequire(import.meta.url)
  let content: unknown
  try {
    // JSON is YAML.
    content =
      (requireOnDemand('yaml') as typeof Yaml).parse(text, { prettyErrors: false, maxAliasCount: 0 }) ?? {}
  } catch (cause) {
    throw problem((cause as Error).message.split('\n', 1)[0]!, cause)
  }
  const result = makeSchema(requireOnDemand('zod/mini') as typeof Zod).safeParse(content)
  if (result.success) return result.data
  throw problem(issueText(result.error.issues, 'the file'))
}

function makeSchema(z: typeof Zod) {
  const text = z
    .string('must be a text')
    .check(z.minLength(1, NOT_EMPTY), z.maxLength(1_000, 'must be shorter'))
  const name = z
    .string('must be a text')
    .check(z.regex(NAME, 'must have 1 to 100 letters, digits or . _ - @ : and begin with a letter or digit'))
  const sha256 = z
    .string('must be a text')
    .check(z.regex(/^[0-9a-f]{64}$/, 'must have 64 hexadecimal digits in lower case'))
  const time = z
    .string('must be a text')
    .check(z.refine(isTime, 'must be a time such as 2030-01-31T12:00:00Z'))
  const positive = z.optional(z.number(POSITIVE).check(z.gt(0, POSITIVE)))
  const limits = z.strictObject(
    {
      requestsPerSecond: positive,
      concurrentStreams: z.optional(z.int(WHOLE).check(z.minimum(1, WHOLE))),
      bytesPerSecond: positive,
    },
    'must be an object with limits',
  )
  const scope = z.enum(SCOPES, `must be one of ${SCOPES.join(', ')}`)
  const grant = {
    name,
    scopes: z.array(scope, 'must be a list of scopes').check(z.minLength(1, NOT_EMPTY)),
    models: z._default(
      z
        .array(text, 'must be a list of texts')
        .check(z.minLength(1, NOT_EMPTY), z.maxLength(1_000, 'must be shorter')),
      ['*'],
    ),
    expires: z.optional(time),
    limits: z.optional(limits),
  }
  const rights = z.refine<Pick<Grant, 'scopes' | 'models'>>(managesAll, {
    error: MANAGES_SOME,
    path: ['models'],
  })
  const key = z
    .strictObject(
      {
        ...grant,
        sha256,
        previous: z.optional(z.strictObject({ sha256, expires: time }, 'must have sha256 and expires')),
      },
      'must be an object',
    )
    .check(rights)
  const certificate = z
    .strictObject({
      ...grant,
      subject_alt_name: z.optional(text),
      common_name: z.optional(text),
      fingerprint: z.optional(text),
    })
    .check(
      rights,
      z.refine(
        (entry) =>
          [entry.subject_alt_name, entry.common_name, entry.fingerprint].filter(isGiven).length === 1,
        {
          error: 'must have exactly one of subject_alt_name, common_name and fingerprint',
        },
      ),
    )
  return z
    .strictObject({
      keys: z._default(z.array(key, 'must be a list').check(z.maxLength(MAX_ENTRIES, TOO_MANY)), []),
      client_certificates: z._default(
        z.array(certificate, 'must be a list').check(z.maxLength(MAX_ENTRIES, TOO_MANY)),
        [],
      ),
    })
    .check(
      z.refine(({ keys }) => isUnique(keys.map((entry) => entry.name)), 'has two keys with the same name'),
      z.refine(
        ({ client_certificates: list }) => isUnique(list.map((entry) => entry.name)),
        'has two client_certificates with the same name',
      ),
      z.refine(
        ({ keys }) => isUnique(keys.map((entry) => entry.sha256)),
        'has two keys with the same sha256',
      ),
    )
}

function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(Date.parse(text))
}

function isGiven(value: string | undefined): boolean {
  return value !== undefined
}

function isUnique(values: readonly string[]): boolean {
  return new Set(values).size === values.length
}

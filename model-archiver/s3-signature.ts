import { createHash, createHmac } from 'node:crypto'
import { ownValue } from '../common/json.ts'

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
  readonly sessionToken?: string
}

const EMPTY_BODY = sha256('')

/** @throws Error with TorchServe's message when a variable is missing */
export function credentialsFrom(env: NodeJS.ProcessEnv): S3Credentials {
  const accessKeyId = env['AWS_ACCESS_KEY_ID'] ?? ''
  const secretAccessKey = env['AWS_SECRET_ACCESS_KEY'] ?? ''
  const region = env['AWS_DEFAULT_REGION'] ?? ''
  if (accessKeyId === '' || secretAccessKey === '' || region === '') {
    throw new Error(
      'Miss environment variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_DEFAULT_REGION',
    )
  }
  return { accessKeyId, secretAccessKey, region, sessionToken: env['AWS_SESSION_TOKEN'] }
}

/** Headers of a GET request signed for S3 (AWS Signature Version 4). */
export function signS3Get(url: URL, credentials: S3Credentials, now: Date): Record<string, string> {
  const time = now.toISOString().replace(/[-:]|\.\d{3}/g, '')
  const headers: Record<string, string> = {
    host: url.host,
    'x-amz-content-sha256': EMPTY_BODY,
    'x-amz-date': time,
    ...(credentials.sessionToken && { 'x-amz-security-token': credentials.sessionToken }),
  }
  const names = Object.keys(headers).sort()
  const scope = `${time.slice(0, 8)}/${credentials.region}/s3/aws4_request`
  const canonical = [
    'GET',
    canonicalPath(url),
    canonicalQuery(url),
    ...names.map((name) => `${name}:${ownValue(headers, name)!}`),
    '',
    names.join(';'),
    EMPTY_BODY,
  ].join('\n')
  const text = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n')
  const signature = hmac(signingKey(credentials, time.slice(0, 8)), text).toString('hex')
  const authorization =
    `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, ` +
    `SignedHeaders=${names.join(';')}, Signature=${signature}`
  return { ...headers, authorization }
}

/** S3 encodes each path segment once. */
function canonicalPath(url: URL): string {
  return url.pathname
    .split('/')
    .map((part) => encode(decodeURIComponent(part)))
    .join('/')
}

function canonicalQuery(url: URL): string {
  return [...url.searchParams]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&')
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function signingKey({ secretAccessKey, region }: S3Credentials, date: string): Buffer {
  return [date, region, 's3', 'aws4_request'].reduce<Buffer>(hmac, Buffer.from(`AWS4${secretAccessKey}`))
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Strict enough that no host that a customer of AWS can create (EC2, ELB) matches the whole. */
const REGION = String.raw`[a-z]{2}(?:-[a-z]+)+-\d{1,2}`
const SERVICE = String.raw`(?:s3(?:-fips)?(?:\.dualstack)?|s3-accesspoint(?:-fips)?(?:\.dualstack)?)\.${REGION}`
const OLD = String.raw`s3(?:-${REGION}|-accelerate(?:\.dualstack)?)?`
/**
 * The endpoints of S3, with and without a bucket (AWS General Reference, “Amazon Simple Storage Service
 * endpoints and quotas”).
 */
const S3_HOST = new RegExp(
  String.raw`^(?:[a-z0-9][a-z0-9.-]*\.)?(?:${SERVICE}|${OLD})\.amazonaws\.com(?:\.cn)?$`,
)

/** Whether a host is one of S3's own. */
export function isS3Host(host: string): boolean {
  return S3_HOST.test(host)
}

/**
 * Whether a request to that address may carry a signature of the operator's AWS keys: S3 over TLS, or an
 * origin that the operator listed.
 * @param listed `https://host[:port]`, or `http://host[:port]` for a store without TLS
 */
export function maySignFor(url: URL, listed: readonly string[]): boolean {
  return (
    (url.protocol === 'https:' && url.port === '' && isS3Host(url.hostname)) || listed.includes(url.origin)
  )
}

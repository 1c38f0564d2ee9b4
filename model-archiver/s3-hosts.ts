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

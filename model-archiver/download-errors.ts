const NO_TLS = 'the host does not speak TLS there: the URL may need http, not https'

/** What to do about failures of the network, by Node's code. */
const CAUSES: ReadonlyMap<string, string> = new Map([
  ['ENOTFOUND', 'the name of the host is not known'],
  ['EAI_AGAIN', 'the name of the host could not be looked up, because no DNS server answered'],
  ['ECONNREFUSED', 'the host refused the connection: nothing listens on this port'],
  ['ECONNRESET', 'the connection broke off'],
  ['EPIPE', 'the connection broke off'],
  ['ETIMEDOUT', 'the host did not answer'],
  ['EHOSTUNREACH', 'the host cannot be reached'],
  ['ENETUNREACH', 'there is no network to the host'],
  ['CERT_HAS_EXPIRED', 'the certificate of the host has expired'],
  ['CERT_NOT_YET_VALID', 'the certificate of the host is not valid yet: compare the clocks'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'the certificate of the host is for another name'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', NO_TLS],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', NO_TLS],
  ['EPROTO', NO_TLS],
])

/** Codes of certificates that no known authority has signed. */
const UNTRUSTED = /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+)$/
const AUTHORITY =
  'the certificate of the host is not signed by a known authority; NODE_EXTRA_CA_CERTS names the file of your own'

/** Why a request failed, in one line: in plain words where they are known, and in Node's. */
export function networkCause(thrown: unknown): string {
  const error = firstOf(thrown)
  const { code = '' } = error
  const words = UNTRUSTED.test(code) ? AUTHORITY : CAUSES.get(code)
  const openssl = /:SSL routines:[^:]*:([^:]+):/.exec(error.message)?.[1]
  const own = (openssl ?? `${error.message}${innerText(error)}`).replace(/\s+/g, ' ').trim() || code
  return words === undefined ? own : `${words} (${own.includes(code) ? own : `${own}, ${code}`})`
}

/** Node joins the failures of several addresses into an error without a message. */
function firstOf(thrown: unknown): NodeJS.ErrnoException {
  const error = thrown as NodeJS.ErrnoException
  return error instanceof AggregateError && error.errors.length > 0 ? firstOf(error.errors[0]) : error
}

function innerText({ cause }: Error): string {
  return cause instanceof Error ? `: ${cause.message}` : ''
}

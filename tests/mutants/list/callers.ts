import type { Mutant } from '../mutant.ts'

const JWT_TESTS = ['tests/auth/jwt.test.ts']
const SEQUENCE_TESTS = ['tests/jobs/sequence-queue.test.ts']

/** Who calls: keys and JWTs, what is told of those that are refused, and whose a sequence is. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'the previous hash of one key takes the key of another',
    file: 'frontend/auth/named-keys.ts',
    find: 'if (key.previous !== undefined && !byDigest.has(key.previous.sha256))',
    replace: 'if (key.previous !== undefined)',
    tests: ['tests/auth/named-keys.test.ts'],
  },
  {
    name: 'a JWT is good to its end, whatever becomes of its key',
    file: 'frontend/auth/jwt-source.ts',
    find: 'const until = Math.min(expires, now() + JWKS_MAX_AGE_MS)',
    replace: 'const until = expires',
    tests: JWT_TESTS,
  },
  {
    name: 'a key set may have any size',
    file: 'frontend/auth/jwks.ts',
    find: 'if (bytes > MAX_JWKS_BYTES)',
    replace: 'if (bytes > 1e12)',
    tests: JWT_TESTS,
  },
  {
    name: 'an address that is locked out has its tokens verified',
    file: 'frontend/auth/gatekeeper.ts',
    find: '    if (address !== undefined && !limiter.admits(address)) return undefined\n',
    replace: '',
    tests: JWT_TESTS,
  },
  {
    name: 'refused limits that were left out are not counted at the end',
    file: 'frontend/observe/logs/audit-log.ts',
    find: '    this.#samples.limit.close()\n',
    replace: '',
    tests: ['tests/observe/audit-log.test.ts'],
  },
  {
    name: 'a pattern of allowed_hosts allows longer names of others',
    file: 'frontend/edge/http/page-check.ts',
    find: 'map((name) => name.slice(1))',
    replace: 'map((name) => name.slice(2))',
    tests: ['tests/security/pages-of-other-sites.test.ts'],
    title: 'takes what is configured',
  },
  {
    name: 'a link of another site opens more than the page of the console',
    file: 'frontend/edge/http/page-check.ts',
    find: "segments.length === 1 && segments[0] === 'console'",
    replace: "segments[0] === 'console'",
    tests: ['tests/security/pages-of-other-sites.test.ts'],
    title: 'a link of another site',
  },
  {
    name: 'a frame of another site opens the console',
    file: 'frontend/edge/http/page-check.ts',
    find: "headers['sec-fetch-dest'] === 'document'",
    replace: 'true',
    tests: ['tests/security/pages-of-other-sites.test.ts'],
    title: 'a link of another site',
  },
  {
    name: 'of two ids of a sequence one is checked, and the handler reads the other',
    file: 'frontend/jobs/sequence-headers.ts',
    find: 'if (value !== undefined && value !== other)',
    replace: 'if (value !== undefined && value !== other && found === name)',
    tests: SEQUENCE_TESTS,
  },
  {
    name: 'an id of a sequence holds the id of another',
    file: 'frontend/jobs/sequence-headers.ts',
    find: 'if (UNFIT.test(id))',
    replace: 'if (id === UNFIT.source)',
    tests: SEQUENCE_TESTS,
  },
  {
    name: 'a handler ends the sequences of all for one of its clients',
    file: 'frontend/jobs/sequence-queue.ts',
    find: 'if (sequence === undefined || sequence.owner !== owner) return',
    replace: 'if (sequence === undefined) return',
    tests: SEQUENCE_TESTS,
  },
  {
    name: 'the loss of a sequence is forgotten for what a handler says to another',
    file: 'frontend/jobs/sequence-queue.ts',
    find: '    this.#lost.forget({ id, owner })\n',
    replace: '    for (const other of [owner, "ann"]) this.#lost.forget({ id, owner: other })\n',
    tests: ['tests/jobs/lost-sequences.test.ts'],
  },
  {
    name: 'where any scope is enough, a key must have all',
    file: 'frontend/auth/gatekeeper.ts',
    find: 'SCOPES.some(',
    replace: 'SCOPES.every(',
    tests: ['tests/auth/named-keys.test.ts'],
  },
]

import type { Mutant } from '../mutant.ts'

const RESUMED = 'model-archiver/resumed-download.ts'
const USER_GET = 'model-archiver/user-get.ts'
const CACHE = 'frontend/cli/model-cache.ts'
const FETCH = 'frontend/cli/fetch-model.ts'
const UNPACK_THREAD = 'model-archiver/unpack-thread.ts'

const DOWNLOADED = ['tests/model-archiver/resumed-download.test.ts']
const UNPACKED = ['tests/model-archiver/unpack-thread.test.ts']
const FETCHED = ['tests/cli/fetch-model.test.ts']

/** Downloads that a user asks for, and what is kept of them. */
const DOWNLOAD_MUTANTS: Mutant[] = [
  {
    name: 'a download without a size fills the disk',
    file: RESUMED,
    find: 'if ((await freeBytes(dirname(part))) >= minFree) return',
    replace: 'if ((await freeBytes(dirname(part))) >= 0) return',
    tests: ['tests/security/downloads-without-end.test.ts'],
  },
  {
    name: 'a resumed download is not checked against its hash',
    file: RESUMED,
    find: 'if (wanted !== undefined && sha256 !== wanted) {',
    replace: 'if (start === 0 && wanted !== undefined && sha256 !== wanted) {',
    tests: DOWNLOADED,
  },
  {
    name: 'the hash of a resumed download is that of its rest',
    file: RESUMED,
    find: 'hash: start > 0 ? hash : createHash',
    replace: 'hash: createHash',
    tests: DOWNLOADED,
  },
  {
    name: 'any bytes are appended to a part',
    file: RESUMED,
    find: 'have.bytes > 0 && Number(start) === have.bytes &&',
    replace: 'have.bytes > 0 &&',
    tests: DOWNLOADED,
  },
  {
    name: 'a weak entity tag makes a part',
    file: RESUMED,
    find: `etag?.startsWith('"') === true && `,
    replace: 'etag !== undefined && ',
    tests: DOWNLOADED,
  },
  {
    name: 'a part of a file with another hash is gone on with',
    file: RESUMED,
    find: 'const sameHash = sha256 !== undefined && ',
    replace: 'const sameHash = sha256 !== undefined || ',
    tests: DOWNLOADED,
  },
  {
    name: 'a file whose size is not announced has no limit',
    file: RESUMED,
    find: '      if (bytes + chunk.length > maxBytes) throw failed(url, `it has more than ${maxBytes} bytes`)\n',
    replace: '',
    tests: DOWNLOADED,
  },
  {
    name: 'a rest that does not fit ends every further download',
    file: RESUMED,
    find: 'if (begunAgain || !error.isRest || options.signal.aborted) throw error',
    replace: 'if (!begunAgain) throw error',
    tests: DOWNLOADED,
  },
  {
    name: 'a rest that does not fit is asked for without end',
    file: RESUMED,
    find: '        begunAgain = true\n',
    replace: '',
    tests: DOWNLOADED,
    title: 'never fit',
  },
  {
    name: 'a rest of another entity is appended',
    file: RESUMED,
    find: 'Number(start) === have.bytes && !isOther',
    replace: 'Number(start) === have.bytes',
    tests: DOWNLOADED,
  },
  {
    name: 'a piece of the rest counts as all of it',
    file: RESUMED,
    find: "if (whole !== undefined && whole !== '*') return Number(whole)\n",
    replace: '',
    tests: DOWNLOADED,
  },
  {
    name: 'the head of an answer may take any time',
    file: 'model-archiver/http-get.ts',
    find: '      request.destroy(new Error(`no answer arrived in full within ${idleMs / 1000} s`))\n',
    replace: '',
    tests: DOWNLOADED,
    title: 'head does not end',
  },
  {
    name: 'the token goes along to other hosts',
    file: USER_GET,
    find: 'bearer !== undefined && at.origin === first.origin &&',
    replace: 'bearer !== undefined &&',
    tests: DOWNLOADED,
  },
  {
    name: 'a redirect may lead to a private address',
    file: USER_GET,
    find: 'allowPrivate: at.host === first.host',
    replace: 'allowPrivate: true',
    tests: DOWNLOADED,
  },
  {
    name: 'a redirect may lead from https to http',
    file: USER_GET,
    find: "if (at.protocol === 'https:' && next.protocol === 'http:')",
    replace: "if (at.protocol === 'https:' && next.protocol === 'ftp:')",
    tests: ['tests/cli/serve-model.test.ts'],
    title: 'from https to http',
  },
  {
    name: 'two commands download one file together',
    file: CACHE,
    find: "if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error\n    throw",
    replace:
      "if ((error as NodeJS.ErrnoException).code === 'EEXIST') return async () => undefined\n    throw",
    tests: FETCHED,
  },
  {
    name: 'without the hub nobody checks the hash of a file in the cache',
    file: FETCH,
    find: '      if (sha256 !== undefined) await checkHash(path, sha256)\n      continue',
    replace: '      continue',
    tests: FETCHED,
  },
  {
    name: 'a file from the same address counts, whatever its hash',
    file: FETCH,
    find: 'there?.url === file.url : there?.sha256 === wanted',
    replace: 'there?.url === file.url : there?.url === file.url',
    tests: FETCHED,
  },
  {
    name: 'a hub may name a file outside the cache',
    file: 'model-archiver/hub.ts',
    find: 'return path.length <= 512 && parts.every(',
    replace: 'return path.length <= 512 || parts.every(',
    tests: FETCHED,
  },
  {
    name: 'a URL may name a file outside the cache',
    file: FETCH,
    find: '  if (/^[\\w@+][\\w .@+()=-]{0,199}$/.test(name)) return name\n',
    replace: "  if (name !== '') return name\n",
    tests: FETCHED,
  },
  {
    name: 'a cached file of another size counts',
    file: CACHE,
    find: " || note['bytes'] !== bytes) return",
    replace: ') return',
    tests: FETCHED,
  },
  {
    name: 'a cached file of a URL serves though its server has another one',
    file: FETCH,
    find: 'await orElse(isCurrent(there, request), true, path, { output, signal })',
    replace: 'true as boolean',
    tests: FETCHED,
  },
  {
    name: 'nobody is told of a connection that is not protected',
    file: FETCH,
    find: "if (!known && protocol === 'http:' && !isLoopbackHost(hostname))",
    replace: "if (known && protocol === 'http:' && !isLoopbackHost(hostname))",
    tests: FETCHED,
  },
]

/** Threads that unpack archives. */
const UNPACK_MUTANTS: Mutant[] = [
  {
    name: 'an archive may take any time to unpack',
    file: UNPACK_THREAD,
    find: '        timer = setTimeout(() => reject(tookTooLong(timeout)), timeout * 1000)\n',
    replace: '',
    tests: UNPACKED,
  },
  {
    name: 'an archive that took too long is unpacked further',
    file: UNPACK_THREAD,
    find: '      await this.worker.terminate()\n      throw error',
    replace: '      throw error',
    tests: UNPACKED,
  },
  {
    name: 'a server that ends waits for what it unpacks',
    file: UNPACK_THREAD,
    find: "        signal?.addEventListener('abort', stop)\n",
    replace: '',
    tests: UNPACKED,
  },
]

export const MUTANTS: readonly Mutant[] = [...DOWNLOAD_MUTANTS, ...UNPACK_MUTANTS]

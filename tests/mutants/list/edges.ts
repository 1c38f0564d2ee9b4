import type { Mutant } from '../mutant.ts'

const HTTP_REPLY = 'frontend/edge/http/http-reply.ts'
const CONNECTION = 'frontend/edge/http/connection.ts'
const TARGET = 'frontend/edge/http/target.ts'
const CALL_GATE = 'frontend/edge/grpc/call-gate.ts'
const READER = 'frontend/edge/grpc/request-reader.ts'
const CLOSE = 'frontend/edge/grpc/close-when-sent.ts'
const LIMITER = 'frontend/auth/failure-limiter.ts'
const REDACT = 'common/redact.ts'
const TAR = 'model-archiver/unpack-tar.ts'

const GRPC_LIMITS = ['tests/security/grpc-limits.test.ts']
const CLOSED_STREAMS = ['tests/edge/grpc/close-when-sent.test.ts']
const LEAVES = ['tests/edge/http/client-leaves.test.ts']
const TARGETS = ['tests/edge/http/target.test.ts']
const LIMITED = ['tests/auth/failure-limiter.test.ts']
const REDACTED = ['tests/common/redact.test.ts']
const UNPACK = ['tests/model-archiver/unpack.test.ts']

/** What meets clients, archives and names of others first. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'a gRPC stream whose status waited never closes',
    file: CLOSE,
    find: '      closeWhenSent(stream)\n      return\n',
    replace: '      return\n',
    tests: CLOSED_STREAMS,
  },
  {
    name: 'a gRPC stream that fails after messages is reset before its status',
    file: READER,
    find: '    closeWhenSent(this.#stream)\n',
    replace: '    setImmediate(() => this.#stream.close())\n',
    tests: CLOSED_STREAMS,
  },
  {
    name: 'a client that is accepted is cut off after a hundred refusals',
    file: CALL_GATE,
    find: 'if (connection.accepted || ++connection.refused < MAX_REFUSED_CALLS) return',
    replace: 'if (++connection.refused < MAX_REFUSED_CALLS) return',
    tests: GRPC_LIMITS,
    title: 'without a token',
  },
  {
    name: 'calls of unknown methods are not counted',
    file: CALL_GATE,
    find: 'rawHeaders)\n      this.#countRefusal(connection, session)\n',
    replace: 'rawHeaders)\n',
    tests: GRPC_LIMITS,
    title: 'without a token',
  },
  {
    name: 'a message takes the memory that its prefix promises',
    file: 'frontend/edge/grpc/message-bytes.ts',
    find: 'Math.min(this.#size + PREFIX_BYTES - this.#length, BLOCK_BYTES)',
    replace: 'Math.max(this.#size + PREFIX_BYTES - this.#length, 1)',
    tests: GRPC_LIMITS,
    title: 'takes the memory of its bytes',
  },
  {
    name: 'a gRPC connection that ended still counts for its address',
    file: 'frontend/edge/grpc/connection-gate.ts',
    find: '      this.#leave(address)\n',
    replace: '',
    tests: ['tests/edge/grpc/connection-gate.test.ts'],
  },
  {
    name: 'an idle gRPC connection stays for ever',
    file: 'frontend/edge/grpc/connection.ts',
    find: 'this.#idle.begin(this)',
    replace: 'this.#idle.end(this)',
    tests: ['tests/edge/grpc/connection-age.test.ts'],
  },
  {
    name: 'open calls do not keep a gRPC connection',
    file: 'frontend/edge/grpc/connection.ts',
    find: '--this.#openCalls === 0',
    replace: '--this.#openCalls >= 0',
    tests: ['tests/edge/grpc/connection-age.test.ts'],
  },
  {
    name: 'bytes that a connection gives back stay taken of the listener',
    file: 'frontend/edge/grpc/byte-budget.ts',
    find: '    this.#whole?.give(bytes)\n',
    replace: '',
    tests: GRPC_LIMITS,
    title: 'arrives as it was sent',
  },
  {
    name: 'a gRPC call at its deadline keeps what waits',
    file: 'frontend/edge/grpc/stream-call.ts',
    find: '      this.#call.destroy()\n',
    replace: '',
    tests: ['tests/edge/grpc/cancellation.test.ts'],
  },
  {
    name: 'a refusal waits for no upload',
    file: HTTP_REPLY,
    find: "  req.once('end', finish).once('close', finish).resume()\n",
    replace: '  finish()\n',
    tests: ['tests/edge/http/body.test.ts'],
    title: 'too much',
  },
  {
    name: 'a response of a stopping server keeps its connection',
    file: HTTP_REPLY,
    find: 'return status < 400 && !state.draining && res.shouldKeepAlive',
    replace: 'return status < 400 && res.shouldKeepAlive',
    tests: ['tests/dialects/torchserve/rest-inference.test.ts'],
    title: 'drain|stopping|shutting',
  },
  {
    name: 'a client that closed its side keeps the connection of its stream',
    file: CONNECTION,
    find: '    this.#socket.destroy()\n',
    replace: '',
    tests: LEAVES,
    title: 'frees the connection',
  },
  {
    name: 'a text that is not ASCII is cut to Latin-1',
    file: 'frontend/edge/http/chunk-writer.ts',
    find: 'const isPlain = size === text.length && size <= SMALL_ITEM_BYTES',
    replace: 'const isPlain = size <= SMALL_ITEM_BYTES',
    tests: ['tests/edge/http/sse.test.ts'],
  },
  {
    name: 'a path that is no percent-encoding is offered to the routes',
    file: 'frontend/edge/http/app.ts',
    find: '        if (exchange.target.error !== undefined) throw exchange.target.error\n',
    replace: '',
    tests: ['tests/dialects/torchserve/rest-inference.test.ts'],
    title: 'is answered',
  },
  {
    name: 'all targets are remembered',
    file: TARGET,
    find: '  if (seen.size >= MAX_SEEN) seen.clear()\n',
    replace: '',
    tests: TARGETS,
  },
  {
    name: 'targets of any length are remembered',
    file: TARGET,
    find: 'if (url.length < MAX_SEEN_LENGTH) seen.set(url, target)',
    replace: 'seen.set(url, target)',
    tests: TARGETS,
  },
  {
    name: 'a target with a scheme keeps its host in the path',
    file: TARGET,
    find: 'slash === null ? url : url.slice(slash[0].length)',
    replace: 'url',
    tests: TARGETS,
  },
  {
    name: 'an open job that ended is still found by its id',
    file: 'frontend/jobs/job-index.ts',
    find: '    this.#jobs.delete(job.request.requestId)\n',
    replace: '',
    tests: ['tests/jobs/job-index.test.ts'],
  },
  {
    name: 'a client describes a model by a header behind others',
    file: 'frontend/workers/python/truthful-headers.ts',
    find: '(?<![^\\n])',
    replace: '^',
    tests: ['tests/workers/handler-headers.test.ts'],
  },
  {
    name: 'a silent address saves up guesses',
    file: LIMITER,
    find: 'return Math.min(BURST, left + (this.#now() - at) / REFILL_MS)',
    replace: 'return left + (this.#now() - at) / REFILL_MS',
    tests: LIMITED,
  },
  {
    name: 'an address is trusted for ever',
    file: LIMITER,
    find: 'return this.#now() - (this.#trusted.get(group) ?? -Infinity) < TRUST_MS',
    replace: 'return this.#trusted.has(group)',
    tests: LIMITED,
  },
  {
    name: 'the address that guesses is forgotten first',
    file: LIMITER,
    find: '  map.delete(key)\n',
    replace: '',
    tests: LIMITED,
  },
  {
    name: 'guesses of a trusted address are a debt',
    file: LIMITER,
    find: 'left: Math.max(0, left - 1)',
    replace: 'left: left - 1',
    tests: LIMITED,
  },
  {
    name: 'a wrong name may break its line',
    file: 'common/names.ts',
    find: '\\u007f-\\u009f\\u2028\\u2029',
    replace: '\\u007f',
    tests: ['tests/common/names.test.ts'],
  },
  {
    name: 'a policy of CloudFront is no secret',
    file: REDACT,
    find: 'accessid|policy|',
    replace: 'accessid|',
    tests: REDACTED,
  },
  {
    name: 'a secret behind a semicolon is shown',
    file: REDACT,
    find: '/([?&;#])([^=?&;#\\s]{1,200})=([^&;#\\s]*)/g',
    replace: '/([?&#])([^=?&;#\\s]{1,200})=([^&;#\\s]*)/g',
    tests: REDACTED,
  },
  {
    name: 'a key that everyone inherits is an own one',
    file: 'common/own-keys.ts',
    find: 'return Object.hasOwn(record, key) ? record[key] : undefined',
    replace: 'return record[key]',
    tests: ['tests/common/own-keys.test.ts'],
  },
  {
    name: 'a key of an object sets its prototype',
    file: 'common/own-keys.ts',
    find: "if (key === '__proto__') {",
    replace: "if (key === 'prototype') {",
    tests: ['tests/common/own-keys.test.ts'],
  },
  {
    name: 'long names of a tar add up to too many headers',
    file: TAR,
    find: '    this.#extensions = 0\n',
    replace: '',
    tests: UNPACK,
    title: 'long names',
  },
  {
    name: 'the long name of a tar goes on to the next entry',
    file: TAR,
    find: '    this.#own = undefined\n',
    replace: '',
    tests: UNPACK,
    title: 'long names',
  },
  {
    name: 'a wrong checksum of a tar is taken',
    file: TAR,
    find: "    if (!header.cksumValid) throw new Error('a header has a wrong checksum')\n",
    replace: '',
    tests: UNPACK,
    title: 'tgz',
  },
  {
    name: 'the disk is asked once for a whole archive',
    file: 'model-archiver/unpack-budget.ts',
    find: '    this.#looked -= Math.min(needed, this.#looked)\n',
    replace: '',
    tests: ['tests/model-archiver/unpack-limits.test.ts'],
    title: 'budget',
  },
]

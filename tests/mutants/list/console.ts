import type { Mutant } from '../mutant.ts'

const PLAYGROUND = 'frontend/dialects/playground.ts'
const REST_APPS = 'frontend/dialects/rest-apps.ts'
const VIEWERS = 'frontend/watch/viewers.ts'
const MOMENT = 'frontend/watch/moment.ts'
const REST_EVENTS = 'frontend/dialects/torchserve/rest-events.ts'
const OPEN_REQUEST = 'frontend/watch/open-request.ts'
const OVERVIEW = 'frontend/models/overview.ts'
const ARCHIVE_UPLOADS = 'frontend/models/archive-uploads.ts'

const PLAYED = ['tests/e2e/playground.test.ts']
const CONFIGURED = ['tests/e2e/configuration-route.test.ts']
const WATCHED = ['tests/watch/viewers.test.ts']
const UPLOADED = ['tests/e2e/uploads.test.ts']
const DESCRIBED = ['tests/models/overview.test.ts']
const OPENED = ['tests/dialects/torchserve/rest-events.test.ts']

/** What the management listener has for the console. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'an unknown path below the playground needs no token',
    file: PLAYGROUND,
    find: "      exchange.admit('inference')\n",
    replace: '',
    tests: PLAYED,
  },
  {
    name: 'a handler lets its page run scripts beside the management API',
    file: 'frontend/edge/http/reply-headers.ts',
    find: '(manages || policy === undefined)',
    replace: '(policy === undefined)',
    tests: PLAYED,
  },
  {
    name: 'XML of a handler runs scripts',
    file: 'frontend/edge/http/reply-headers.ts',
    find: '/html|xml/i',
    replace: '/html|svg/i',
    tests: ['tests/security/sniffed-answers.test.ts'],
  },
  {
    name: 'the playground is there without the console',
    file: REST_APPS,
    find: 'deps.settings.enableConsole && servesManagement(kind)',
    replace: 'servesManagement(kind)',
    tests: PLAYED,
  },
  {
    name: 'the playground has the whole path',
    file: 'frontend/edge/http/exchange.ts',
    find: 'segments: this.target.segments.slice(segments)',
    replace: 'segments: this.target.segments',
    tests: PLAYED,
  },
  {
    name: 'the API description below the playground is that of the listener',
    file: 'frontend/dialects/torchserve/rest-site.ts',
    find: "listenerDescription('inference', paths)",
    replace: 'listenerDescription(state.listener, [])',
    tests: PLAYED,
    title: 'the description of the API is answered',
  },
  {
    name: 'a key of some models sees the configuration',
    file: 'frontend/dialects/torchserve/rest-configuration.ts',
    find: '!seesAll(exchangeOf(ctx).principal)',
    replace: 'seesAll(exchangeOf(ctx).principal) && false',
    tests: CONFIGURED,
  },
  {
    name: 'the configuration shows passwords',
    file: 'frontend/config/secrets.ts',
    find: "  if (SECRET.test(name)) return '***'\n",
    replace: '',
    tests: CONFIGURED,
  },
  {
    name: 'uploads of keys of some models take every place',
    file: 'common/places.ts',
    find: 'if (why !== undefined) throw',
    replace: "if (why === 'all') throw",
    tests: ['tests/security/uploads-that-stand-still.test.ts'],
  },
  {
    name: 'an upload has no greatest size',
    file: ARCHIVE_UPLOADS,
    find: '      if (this.size > this.#maxBytes) throw tooLarge(this.#maxBytes)\n',
    replace: '',
    tests: UPLOADED,
  },
  {
    name: 'an upload stands beside the same model in another format',
    file: ARCHIVE_UPLOADS,
    find: '      await checkStem(modelStore, stem)\n',
    replace: '',
    tests: UPLOADED,
  },
  {
    name: 'signed mode takes an archive before its signature',
    file: ARCHIVE_UPLOADS,
    find: '!isSignature && requireSignedArchives &&',
    replace: 'false &&',
    tests: UPLOADED,
  },
  {
    name: 'the timer of viewers outlives the server',
    file: VIEWERS,
    find: '      this.#leave(viewer)\n      this.#guarded(viewer, () => viewer.outlet.isFull',
    replace: '      this.#guarded(viewer, () => viewer.outlet.isFull',
    tests: WATCHED,
  },
  {
    name: 'a stream of events without news falls silent',
    file: VIEWERS,
    find: 'if (isSilent && now - viewer.sentAt < SILENCE_MS) return',
    replace: 'if (isSilent) return',
    tests: WATCHED,
  },
  {
    name: 'a key of some models sees loads whose name the archive decides',
    file: MOMENT,
    find: 'all || (modelName !== undefined && viewer.sees(modelName))',
    replace: 'all || modelName === undefined || viewer.sees(modelName)',
    tests: WATCHED,
  },
  {
    name: 'open requests come newest first',
    file: OPEN_REQUEST,
    find: 'a.createdAt - b.createdAt',
    replace: 'b.createdAt - a.createdAt',
    tests: WATCHED,
  },
  {
    name: 'lines of the log that are gone are not counted',
    file: 'frontend/observe/logs/log-tail.ts',
    find: 'dropped: first - count',
    replace: 'dropped: 0',
    tests: ['tests/observe/log-tail.test.ts'],
  },
  {
    name: 'a value of a label may end itself',
    file: 'frontend/observe/metrics/page.ts',
    find: 'value.replace(/[\\\\"\\n]/g',
    replace: 'value.replace(/[\\\\\\n]/g',
    tests: ['tests/observe/page.test.ts'],
    title: 'stays one value',
  },
  {
    name: 'HEAD of the events is a viewer',
    file: REST_EVENTS,
    find: "if (ctx.method === 'HEAD')",
    replace: "if (ctx.method === 'OPTIONS')",
    tests: ['tests/e2e/events.test.ts'],
    title: 'HEAD tells',
  },
  {
    name: 'a key of some models gets the event of an operator',
    file: MOMENT,
    find: 'seesAll(viewer) ? undefined : viewer',
    replace: 'undefined',
    tests: WATCHED,
    title: 'is not that of a key for one model',
  },
  {
    name: 'a key of some models sees the others, an operator none',
    file: MOMENT,
    find: 'models: all ?',
    replace: 'models: !all ?',
    tests: WATCHED,
    title: 'sees that model alone',
  },
  {
    name: 'a key of some models sees the others',
    file: MOMENT,
    find: 'this.#models.filter(({ modelName }) => viewer.sees(modelName))',
    replace: 'this.#models',
    tests: WATCHED,
    title: 'sees that model alone',
  },
  {
    name: 'a key of some models may ask for the log',
    file: REST_EVENTS,
    find: "topics.has('log') && !mayReadLog",
    replace: 'false',
    tests: OPENED,
    title: 'all topics but the log',
  },
  {
    name: 'a key of some models gets the log unasked',
    file: REST_EVENTS,
    find: '|| mayReadLog',
    replace: '|| true',
    tests: OPENED,
    title: 'all topics but the log',
  },
  {
    name: 'a viewer that broke stays',
    file: VIEWERS,
    find: '      this.#leave(viewer)\n      viewer.outlet.cut',
    replace: '      viewer.outlet.cut',
    tests: WATCHED,
    title: 'what breaks one viewer',
  },
  {
    name: 'a viewer whose key has ended stays',
    file: VIEWERS,
    find: '      this.#leave(viewer)\n      outlet.end()',
    replace: '      outlet.end()',
    tests: WATCHED,
    title: 'until the key ends',
  },
  {
    name: 'lines of the log come again',
    file: VIEWERS,
    find: '    viewer.lines = this.#watched.logTail?.written ?? 0\n',
    replace: '',
    tests: WATCHED,
    title: 'each line of the log',
  },
  {
    name: 'a log without new lines is an event',
    file: MOMENT,
    find: ' || logTail.written === count',
    replace: '',
    tests: WATCHED,
    title: 'a log without new lines',
  },
  {
    name: 'all viewers get the lines of the first',
    file: MOMENT,
    find: 'made(this.#logs, count,',
    replace: 'made(this.#logs, 0,',
    tests: WATCHED,
    title: 'a new viewer gets the lines',
  },
  {
    name: 'a viewer that is cut off sees a whole stream',
    file: REST_EVENTS,
    find: 'this.#exchange.reply.break(why)',
    replace: 'this.#exchange.reply.end()',
    tests: OPENED,
    title: 'cut\\(\\) breaks it off',
  },
  {
    name: 'a request waits for its handler while its client does not read',
    file: OPEN_REQUEST,
    find: "isHeldBack ? 'client' : 'handler'",
    replace: "'handler'",
    tests: ['tests/watch/open-request.test.ts'],
    title: 'a client that does not read',
  },
  {
    name: 'an overview swaps what waits and the room for more',
    file: OVERVIEW,
    find: 'waiting: queue.pending, room: queue.remainingCapacity',
    replace: 'waiting: queue.remainingCapacity, room: queue.pending',
    tests: DESCRIBED,
    title: 'each number of a model',
  },
  {
    name: 'an overview counts no items of open streams',
    file: OVERVIEW,
    find: 'metrics.tally.items + items',
    replace: 'metrics.tally.items',
    tests: DESCRIBED,
    title: 'items and bytes',
  },
]

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type PythonArchive, packPython } from './archive.ts'
import type { TestPython } from './environments.ts'
import { source } from './models.ts'
import { JSON_TYPE, type Peer, type Seen } from './peer.ts'
import { healthClient } from '../grpc-clients.ts'
import { execa } from '../tools.ts'

/** What is seen of one row of docs/torchserve-compatibility.md: of TorchServe 0.12.0, and of this server. */
export interface Recorded {
  readonly torchserve: Seen
  readonly here: Seen
}

type Probe = (peer: Peer) => Promise<Seen>
/** By heading and first cell. A text: the test that holds the row, because no answer shows it. */
type Rows = Readonly<Record<string, Readonly<Record<string, Probe | string>>>>

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const input = (text: string) => ({ data: Buffer.from(text) })
const predict = (peer: Peer, model: string, headers: Record<string, string>, body: string) =>
  peer
    .model(model)
    .then(() => peer.rest('inference', `/predictions/${model}`, { headers, body }, 'ts_request_sequence_id'))
/** Answers together, in their order. */
const all = async (...answers: Promise<Seen>[]): Promise<Seen> => Promise.all(answers)
const registered = async (peer: Peer, name: string, register: Promise<Seen>, ...fields: string[]) => {
  const [status] = (await register) as Seen[]
  const described = await peer.describe(name, ...fields).catch(() => 'not there')
  await peer.rest('management', `/models/${name}`, { method: 'DELETE' })
  return [status, described]
}
const byName = (peer: Peer, query: string): Promise<Seen> => peer.post(`/models?url=wishes.mar&${query}`)

/** Each row of the tables that list differences. */
export const DIFFERENCES: Rows = {
  'Streams and responses': {
    'The first item of a stream is its last': (peer) => predict(peer, 'steps', {}, '1'),
    'The client disconnects': 'tests/e2e/cancellation',
    'Slow client': 'tests/e2e/backpressure',
    '`Predictions` (gRPC) of a handler that streams': async (peer) => {
      await peer.model('streams')
      return peer.grpc('Predictions', 'streams', { stream: true })
    },
    '`StreamPredictions` of a handler that does not stream': async (peer) => {
      await peer.model('wishes')
      return peer.grpc('StreamPredictions', 'wishes', {})
    },
    'Response over `max_response_size`': (peer) => peer.wish('late', { bytes: 7_000_000 }),
    'gRPC: status, content type, and headers of the handler': 'tests/dialects/torchserve/grpc-inference',
    'gRPC: metadata of the client': async (peer) => {
      await peer.model('wishes')
      return peer.grpc('Predictions', 'wishes', { header: 'x-mine' }, { 'x-mine': 'seen' })
    },
    'Handler status 600 or above, or below 200': (peer) =>
      all(
        peer.wish('wishes', { status: 600 }),
        peer.wish('wishes', { status: 101 }),
        peer.wish('wishes', { status: 99 }),
        peer.wish('wishes', { status: 0 }),
      ),
    'Headers of every response': (peer) =>
      all(
        peer.wish('wishes', {}, 'x-content-type-options'),
        peer.wish('wishes', { stream: true }, 'x-content-type-options', 'x-accel-buffering'),
      ),
  },
  'Time limits, queues, and batches': {
    'Response timeout': (peer) => peer.wish('late', { sleep: 2 }),
    'Time limits': 'tests/e2e/time-keys',
    '`clientTimeoutInMills`': async (peer) => {
      await peer.model('impatient')
      return all(peer.wish('impatient', { sleep: 1 }), peer.wish('impatient', { sleep: 1 }))
    },
    'Waiting for a batch': 'tests/e2e/batching',
    '`maxBatchDelay: 0`': (peer) =>
      peer.model('impatient').then(() => peer.describe('impatient', 'maxBatchDelay')),
    '`max_batch_delay` missing in a JSON register body': (peer) => {
      const body = JSON.stringify({ url: 'wishes.mar', model_name: 'json' })
      const register = peer.rest('management', '/models', { headers: JSON_TYPE, body })
      return registered(peer, 'json', register, 'maxBatchDelay')
    },
    'Queued requests of a model that is unregistered': 'tests/e2e/shutdown',
    'A model that no worker can load': async (peer) => {
      await peer.post('/models?url=broken.mar&initial_workers=1&synchronous=false')
      const answer = await peer.rest('inference', '/predictions/broken', { body: 'x' })
      await peer.rest('management', '/models/broken', { method: 'DELETE' })
      return answer
    },
    'Continuous batching with two workers': 'tests/e2e/continuous-batching',
    'Continuous batching over gRPC': async (peer) => {
      await peer.model('steps')
      return peer.grpc('StreamPredictions', 'steps', 3)
    },
    'A request of continuous batching ends with its first step': (peer) => predict(peer, 'steps', {}, '1'),
    'A step of continuous batching throws': 'tests/e2e/continuous-batching',
    'Data of a request in later steps': 'tests/e2e/continuous-batching',
    '`continuousBatching` with `parallelType` tp, pptp, or custom and several ranks':
      'tests/models/scheduling-settings',
  },
  'Sequences and job tickets': {
    'gRPC unary request to a sequence model without an id': async (peer) => {
      await peer.model('sums')
      return peer.grpc('Predictions', 'sums', 1)
    },
    'The id of a sequence in the response': (peer) =>
      predict(peer, 'sums', { ts_request_sequence_id: 'a' }, '1'),
    'Name of the sequence header': (peer) => {
      const headers = { ...JSON_TYPE, TS_REQUEST_SEQUENCE_ID: 'b' }
      return predict(peer, 'letters', headers, '{"header": "ts_request_sequence_start"}')
    },
    'Request with `ts_request_sequence_end: true`': async (peer) => {
      const id = { ts_request_sequence_id: 'c' }
      await predict(peer, 'sums', { ...id, ts_request_sequence_end: 'true' }, '1')
      return peer.describe('sums', 'openSequences')
    },
    'Request with `ts_request_sequence_start: true` of an open sequence': 'tests/jobs/sequence-queue',
    'A sequence ends': 'tests/e2e/sequence-ends',
    'A handler ends a sequence that has waiting requests': 'tests/jobs/sequence-queue',
    '`sequenceMaxIdleMSec` missing': (peer) => predict(peer, 'endless', { ts_request_sequence_id: 'a' }, '1'),
    'Batch of sequences': 'tests/e2e/sequences',
    'A worker of a sequence model dies': 'tests/e2e/sequences',
    '`useJobTicket` with sequences': (peer) => predict(peer, 'tickets', { ts_request_sequence_id: 'a' }, '1'),
    '`StreamPredictions2`: the client half-closes': async (peer) => {
      await peer.model('sums')
      return peer.duplex([{ model_name: 'sums', input: input('1'), sequence_id: 'd' }], true)
    },
    '`StreamPredictions2`: `sequence_id` of replies': async (peer) => {
      await peer.model('turns')
      return peer.duplex([{ model_name: 'turns', input: input('{}'), sequence_id: 'e' }])
    },
    '`StreamPredictions2`: an error': async (peer) => {
      await peer.model('sums')
      return peer.duplex([{ model_name: 'sums', input: input('no number'), sequence_id: 'f' }])
    },
    '`StreamPredictions2`: `ts_request_sequence_end`': async (peer) => {
      await peer.model('ends')
      const wish = input(JSON.stringify({ header: 'ts_request_sequence_end' }))
      return peer.duplex([{ model_name: 'ends', input: wish, sequence_id: 'g' }])
    },
    '`StreamPredictions2` of a model without sequences': async (peer) => {
      await peer.model('wishes')
      return peer.duplex([{ model_name: 'wishes', input: input('{}'), sequence_id: 'h' }])
    },
  },
  'Workers, ranks, and GPUs': {
    'Backpressure and cancellation in a rank group': 'tests/e2e/rank-groups',
    'Intermediate responses from a rank other than 0': 'tests/e2e/rank-groups',
    '`number_of_gpu` from a variable': 'tests/e2e/devices',
    '`CUDA_VISIBLE_DEVICES` of the server': 'tests/workers/devices',
    torchrun: 'tests/python/ranks',
    'torchrun: restarts': 'tests/python/ranks',
    'torchrun: without `rdzv-endpoint`': 'tests/python/ranks',
    'torchrun: which one': 'tests/python/ranks',
    'A rank that cannot load': 'tests/workers/rank-group',
    '`minWorkers` without `maxWorkers`': (peer) =>
      registered(peer, 'several', peer.post('/models?url=several.mar'), 'minWorkers', 'maxWorkers'),
  },
  'Python workers': {
    'Response timeout': 'tests/python/faults',
    'The client disconnects': 'tests/python/unread-streams',
    'Slow client': 'tests/python/unread-streams',
    'gRPC streams of a handler that does not stream': async (peer) => {
      await peer.model('wishes')
      return peer.grpc('StreamPredictions', 'wishes', {})
    },
    'gRPC streams of continuous batching': async (peer) => {
      await peer.model('steps')
      return peer.grpc('StreamPredictions', 'steps', 2)
    },
    '`describe` with continuous batching': 'tests/python/continuous',
    '`Authorization` and other credentials of clients': 'tests/workers/handler-headers',
    '`TS_KEYSTORE_PASS`': 'tests/workers/inherited-env',
    'Headers of a `describe`': async (peer) => {
      await peer.model('wishes')
      const headers = { 'x-mine': 'seen' }
      const [, described] = (await peer.rest('management', '/models/wishes?customized=true', {
        ...{ method: 'GET', headers },
      })) as [unknown, { customizedMetadata: unknown }[]]
      return described[0]!.customizedMetadata
    },
    "Names of the sequence headers in Python's context": 'tests/python/serving',
    '`asyncCommunication`: an error': 'tests/python/async',
    '`asyncCommunication`: a crash': 'tests/python/async',
    '`asyncCommunication`: time limits': 'tests/python/async',
    '`asyncCommunication`: batches': 'tests/python/async',
    'Requirements of a model': 'tests/python/dependencies',
    'Packages that the interpreter lacks': 'tests/python/mistakes',
    'Several servers of one user': 'tests/cli/servers',
    'Ctrl-C in a terminal': 'tests/python/ends',
    'Processes that a handler started, and workers of a killed server': 'tests/python/left-processes',
  },
  Envelopes: {
    '`kserve` and `kservev2` with several requests in a batch': 'tests/python/envelopes',
    'A request that its envelope cannot read': 'tests/e2e/envelopes',
    '`kservev2`: name and version in the response': 'tests/python/envelopes',
    '`kservev2`: several strings in a `BYTES` input': 'tests/backend-worker/envelopes',
    '`envelope` in a manifest': 'tests/e2e/envelopes',
    'Unknown `service_envelope`': 'tests/e2e/envelopes',
  },
  'Models and registration': {
    'Precedence of model settings': (peer) =>
      registered(
        peer,
        'asked',
        peer.post('/models?url=late.mar&model_name=asked&response_timeout=7'),
        'responseTimeout',
      ),
    'A folder outside the model store, or a `file://` URL, as `url`': async (peer) => {
      const register = async (url: string) =>
        (await registered(peer, 'wishes2', peer.post(`/models?url=${url}`)))[0]
      return [await register(outside('wishes2')), await register(`file://${outside('wishes2.mar')}`)]
    },
    'URLs of loopback and private addresses': (peer) => peer.post('/models?url=http://127.0.0.1:9/far.mar'),
    'Names of models, versions, and workflows': (peer) =>
      all(byName(peer, 'model_name=a%0Ab'), byName(peer, 'model_name=a%20b')),
    'The file name of a URL': 'tests/model-archiver/download',
    'Passwords and signatures in `modelUrl`': 'tests/e2e/registration',
    '`s3_sse_kms=true`': 'tests/model-archiver/download',
    'A `file://` URL': 'tests/model-archiver/locate',
    'Two downloads of one file at a time': 'tests/model-archiver/download',
    'Registering and downloading': 'tests/e2e/registration',
    'A model of the start that cannot be loaded': 'tests/e2e/failed-at-start',
    'Empty JSON body of a register call': (peer) =>
      peer.rest('management', '/models', { headers: JSON_TYPE, body: '' }),
    '`describe`': async (peer) => {
      await peer.model('wishes')
      const [[worker]] = (await peer.describe('wishes', 'workers')) as [[object]]
      return Object.keys(worker)
    },
    '`describe`, also of a workflow: the archive': (peer) =>
      peer.model('wishes').then(() => peer.describe('wishes', 'archivePinned')),
    'Requests that name no version': (peer) =>
      peer.model('wishes').then(() => peer.get('management', '/models/wishes/traffic')),
    'Workers that do not start': (peer) => peer.post('/models?url=broken.mar&initial_workers=1'),
    '`sha256` of a register call': async (peer) =>
      (await registered(peer, 'pinned', byName(peer, `model_name=pinned&sha256=${'0'.repeat(64)}`)))[0],
  },
  'Parameters of the management API': {
    'a name that looks misspelt: `min_workr=2`, `batchsize=4`': (peer) => scaled(peer, 'min_workr=2'),
    'any other unknown name: `colour=red`': (peer) => scaled(peer, 'min_worker=1&colour=red'),
    'a number that is none, or out of its range: `min_worker=abc`, `batch_size=0`': (peer) =>
      scaled(peer, 'min_worker=abc'),
    'a boolean that is neither `true` nor `false`: `synchronous=yes`': (peer) =>
      scaled(peer, 'min_worker=1&synchronous=yes'),
    '`number_gpu` and `timeout` of `PUT`, `synchronous` and `timeout` of `DELETE`': (peer) =>
      scaled(peer, 'min_worker=1&number_gpu=1&timeout=3'),
    '`nextPageToken` of `GET /models`': async (peer) => {
      await peer.model('wishes')
      const [, listed] = (await peer.get('management', '/models?nextPageToken=1000')) as [
        string,
        { models: unknown[] },
      ]
      return listed.models.length > 0 ? 'the first page' : 'the page of the token'
    },
  },
  Workflows: {
    'Registering a workflow': 'tests/dialects/torchserve/rest-workflows',
    'A leaf that streams': 'tests/e2e/workflows',
    gRPC: async (peer) => {
      await workflow(peer)
      return peer.grpc('Predictions', 'flow', { bytes: 2 })
    },
    'The client disconnects': 'tests/e2e/workflows',
    Functions: 'tests/e2e/workflows',
    'Status, headers, and content type': async (peer) => {
      await workflow(peer)
      const options = { headers: JSON_TYPE, body: '{"status": 202}' }
      return peer.rest('inference', '/wfpredict/flow', options, 'content-type', 'x-wish')
    },
    'A node responds to another node with an error status': 'tests/e2e/workflow-rules',
    'Several leaves with output that is not a JSON object': 'tests/e2e/workflow-rules',
    'A node without a worker, whose model cannot be loaded, or with a full queue': 'tests/e2e/workflow-rules',
    'Unregistering the model of a node': 'tests/e2e/workflow-rules',
    'Invalid archive or specification': async (peer) => {
      const answer = (await peer.post('/workflows?url=no-workflow.war')) as [string, { type: string }]
      return [answer[0], answer[1].type]
    },
    'Settings for all nodes, after a model in the specification': 'tests/model-archiver/workflow-spec',
    'Two nodes that lead to each other': 'tests/model-archiver/workflow-dag',
  },
  'Configuration and snapshots': {
    'Misspelt keys in config.properties': 'tests/config/properties',
    'Unknown `metrics_mode`': 'tests/config/settings',
    'Only one of `certificate_file` and `private_key_file`': 'tests/tls/https',
    Snapshots: 'tests/e2e/snapshots',
    'A snapshot and `config.properties`': 'tests/e2e/snapshots',
    'A snapshot and `--models`, or a `load_models` that was changed': 'tests/e2e/snapshots',
    '`disable_token_authorization`, `enable_model_api` and other switches that open a server, in a snapshot that a start finds':
      'tests/e2e/snapshots',
    'Tokens off, or the model API on, on an address that other machines can reach': 'tests/config/settings',
    'Requests from web pages of other sites': async (peer) => {
      const options = { method: 'GET', headers: { origin: 'http://else.example' } }
      return ((await peer.rest('management', '/models', options)) as Seen[])[0]
    },
    '`runtimeType` missing in a snapshot': 'tests/config/snapshots',
    'Files of a killed server in `TEMP`': 'tests/e2e/lifecycle',
  },
  'Metrics and logs': {
    '`/metrics` in the mode `log`': async (peer) => {
      await peer.wish('wishes', {})
      const [status, page] = (await peer.get('metrics', '/metrics')) as [string, string]
      return [status, /^ts_inference_requests_total\{/m.test(page) ? 'samples' : page]
    },
    'Latency counters': 'tests/e2e/metrics',
    'System metrics': 'tests/observe/system-metrics',
    '`memoryUsage` in `describe`': 'tests/e2e/rank-groups',
    'Metric log lines': 'tests/observe/metrics',
    'Label sets of a metric': 'tests/observe/metrics',
    'Invalid metrics.yaml': 'tests/observe/metrics-config',
    "Dimensions of a handler's metric": 'tests/observe/metrics',
    'Access log of gRPC': 'tests/e2e/log-files',
    'A client disconnects before its response': 'tests/e2e/cancellation',
    'Rotated log files': 'tests/observe/log-file',
  },
  'REST, gRPC, and TLS': {
    TLS: 'tests/tls/https',
    'JKS keystores': 'tests/tls/https',
    'https without a key': 'tests/tls/https',
    'API description: wrong defaults (`response_timeout` 2, `synchronous` false); describe is not a list':
      'tests/dialects/torchserve/api-description',
    'A path with invalid percent-encoding': (peer) =>
      peer.rest('inference', '/predictions/%zz', { body: 'x' }),
    'A body over `max_request_size`': (peer) =>
      peer.rest('inference', '/predictions/wishes', { body: 'x'.repeat(7_000_000) }),
    'A full queue, of a model, a sequence, or job tickets': async (peer) => {
      await peer.model('narrow')
      const first = peer.wish('narrow', { sleep: 1.5 })
      const others = await all(...['b', 'c', 'd'].map(() => peer.wish('narrow', {}, 'retry-after')))
      await first
      return (others as Seen[][]).find(([status]) => status !== '200') ?? 'none is refused'
    },
    '405 with the model API off': 'tests/dialects/torchserve/rest-management',
    '404 of a name that no model has': async (peer) => {
      await peer.model('wishes')
      return peer.rest('inference', '/predictions/wishe', { body: 'x' }, 'x-hint')
    },
    '`GET /` of a browser (`Accept: text/html`)': async (peer) => {
      const ask = (accept: string) =>
        peer.rest('inference', '/', { method: 'GET', headers: { accept } }, 'content-type', 'x-hint')
      return (await Promise.all(['text/html', '*/*'].map(ask))).map((seen) => (seen as Seen[]).slice(0, -1))
    },
    '`curl -d \'{"text": "a"}\'` or `curl -d hello` without a content type, which curl sends as a form': (
      peer,
    ) => all(predict(peer, 'plain', FORM, '{"text": "a"}'), predict(peer, 'plain', FORM, 'hello')),
    'A form with `a=%zz`, or with `=1`': (peer) =>
      all(predict(peer, 'wishes', FORM, 'a=%zz'), predict(peer, 'wishes', FORM, '=1')),
    'A malformed `multipart/form-data` body': (peer) => {
      const headers = { 'content-type': 'multipart/form-data; boundary=b' }
      return all(
        predict(peer, 'wishes', headers, '--b\r\nno header\r\n\r\nx\r\n--b--\r\n'),
        predict(peer, 'wishes', headers, 'x'),
      )
    },
    '`Transfer-Encoding` other than `chunked`, such as `gzip, chunked`': 'tests/e2e/bad-requests',
    // With a body TorchServe often resets the connection before its answer is read.
    'A request line over 4 KiB': async (peer) => {
      await peer.model('wishes')
      return peer.get('inference', `/predictions/wishes?a=${'x'.repeat(5000)}`)
    },
    '`/v1/models/{m}`, `/v2/health/ready`, ServerReady, ModelReady': async (peer) => {
      await peer.post('/models?url=broken.mar&initial_workers=1&synchronous=false')
      const answer = await peer.get('management', '/v1/models/broken')
      await peer.rest('management', '/models/broken', { method: 'DELETE' })
      return answer
    },
    '`/v2`: `extenstion`': 'tests/dialects/open-inference/rest',
    '`/v2`, `/v2/health/...` without `ts_open_inference_protocol`': (peer) =>
      peer.get('inference', '/v2/health/live'),
    '`/v2/models/{m}/versions/{v}/...`': 'tests/dialects/open-inference/rest',
    '`/v2` paths: missing or wrong token, unknown model': 'tests/e2e/token-matrix',
    'Versioned management routes and tokens on a shared port': 'tests/e2e/token-matrix',
    Tokens: 'tests/auth/token-store',
    'TLS suites': 'tests/tls/https',
    'Token route': 'tests/e2e/tokens',
    'gRPC health and reflection': async (peer) => {
      const client = healthClient(peer.ports.grpcInference)
      const check = promisify(client['Check']!.bind(client) as Check)
      const seen = await check({}).then(
        ({ status }) => `status ${status}`,
        (error: unknown) => `code ${(error as { code: number }).code}`,
      )
      client.close()
      return seen
    },
    'Open Inference gRPC: ServerMetadata': 'tests/dialects/torchserve/grpc-open-inference',
    'Open Inference gRPC: raw contents, parameters, requested outputs':
      'tests/dialects/torchserve/grpc-open-inference',
    'Open Inference gRPC: an invalid response of the handler':
      'tests/dialects/torchserve/grpc-open-inference',
    'Open Inference gRPC: BYTES in the response': 'tests/dialects/torchserve/grpc-open-inference',
  },
}

type Check = (message: object, done: (error: unknown, reply: { status: string }) => void) => void

/** What is the same: by the subject of the table of coverage. */
export const SAME: Readonly<Record<string, Probe>> = {
  'Common response rules': (peer) =>
    all(
      peer.wish('wishes', {}, ...COMMON_HEADERS),
      peer.get('management', '/nothing', ...COMMON_HEADERS),
      peer.wish('wishes', { status: 418 }, 'connection'),
      peer.wish('wishes', { status: 418, phrase: 'Some pot' }),
      peer.wish('wishes', { status: 599 }),
    ),
  'Exceptions and statuses': async (peer) =>
    await all(
      peer.wish('wishes', { raise: true }),
      ...[413, 414, 418, 425, 451, 499, 508, 599].map((reject) => peer.wish('wishes', { reject })),
    ),
  'Message catalogue': (peer) =>
    all(
      peer.rest('inference', '/predictions/nothing', { body: 'x' }),
      peer.get('management', '/models/nothing'),
      peer.get('management', '/models/wishes/7.0'),
      peer.rest('management', '/models/wishes/7.0/set-default', { method: 'PUT' }),
      peer.rest('management', '/models/nothing', { method: 'DELETE' }),
      peer.post('/models'),
      peer.post('/models?url=nothing.mar'),
      peer.post('/models?url=../nothing.mar'),
      peer.post('/models?url=wishes.mar&model_name=r&runtime=ruby'),
      peer.rest('management', '/models', { headers: JSON_TYPE, body: '{"batch_size": 1}' }),
      peer.rest('management', '/models/wishes?min_worker=3&max_worker=1', { method: 'PUT' }),
      peer.rest('inference', '/invocations', { body: 'x' }),
      peer.get('management', '/workflows/nothing'),
      peer.rest('inference', '/wfpredict/nothing', { body: 'x' }),
    ),
  'Inference endpoints, /ping, KServe and OIP REST': async (peer) => {
    await peer.model('plain')
    const ask = (path: string) => peer.rest('inference', path, { headers: JSON_TYPE, body: '[1]' })
    return all(
      peer.get('inference', '/ping'),
      ...[
        '/predictions/plain/1.0',
        '/v1/models/plain:predict',
        '/v2/models/plain/infer',
        '/plain/predict',
      ].map(ask),
      ask('/models/plain/invoke'),
      ask('/invocations?model_name=plain'),
    )
  },
  'How a request becomes handler input': (peer) =>
    all(
      predict(peer, 'wishes', { 'content-type': 'multipart/form-data' }, '--b\r\n'),
      predict(peer, 'wishes', { 'content-type': 'text/plain' }, 'é'),
      predict(peer, 'wishes', FORM, 'a=1&b=%20'),
      predict(peer, 'wishes', {}, 'bytes'),
    ),
  'Management endpoints': async (peer) => {
    await peer.model('wishes')
    return all(
      peer.describe('wishes', ...DESCRIBED),
      peer.rest('management', '/models/wishes?min_worker=1&synchronous=true', { method: 'PUT' }),
      peer.rest('management', '/models/wishes?min_worker=1', { method: 'PUT' }),
      peer.rest('management', '/models/wishes/1.0/set-default', { method: 'PUT' }),
      peer
        .rest('management', '/models/wishes?customized=true', { method: 'GET' })
        .then((seen) => (seen as Seen[])[0]),
    )
  },
  'HTTP framing of streams': (peer) => peer.wish('wishes', { stream: true, raise: true }, 'ts_stream_next'),
  'gRPC streams': async (peer) => {
    await peer.model('wishes')
    return [
      await peer.grpc('StreamPredictions', 'wishes', { stream: true }),
      await peer.grpc('StreamPredictions', 'wishes', { stream: true, raise: true }),
    ]
  },
  'Workflow REST': async (peer) => {
    await workflow(peer)
    const options = { headers: JSON_TYPE, body: '{"bytes": 2}' }
    return all(
      peer.rest('inference', '/wfpredict/flow', options, 'content-type'),
      peer.post('/workflows?url=flow.war'),
      peer.get('management', '/workflows'),
    )
  },
  'gRPC status codes': async (peer) => {
    await peer.model('wishes')
    return [
      await peer.grpc('Predictions', 'nothing', {}),
      await peer.grpc('Predictions', '', {}),
      await peer.grpc('Predictions', 'wishes', { raise: true }),
      await peer.grpc('Predictions', 'wishes', { reject: 413 }),
      await peer.grpc('Predictions', 'wishes', { reject: 507 }),
    ]
  },
}

const COMMON_HEADERS = ['pragma', 'cache-control', 'expires', 'connection', 'content-type']
const DESCRIBED = [
  ...['modelName', 'modelVersion', 'modelUrl', 'runtime', 'minWorkers', 'maxWorkers', 'batchSize'],
  ...['maxBatchDelay', 'responseTimeout', 'startupTimeout', 'maxRetryTimeoutInSec', 'clientTimeoutInMills'],
  ...['parallelType', 'parallelLevel', 'deviceType', 'deviceIds', 'continuousBatching', 'useJobTicket'],
  ...['useVenv', 'stateful', 'sequenceMaxIdleMSec', 'sequenceTimeoutMSec', 'maxNumSequence'],
  ...['maxSequenceJobQueueSize', 'loadedAtStartup', 'jobQueueStatus'],
]

const scaled = (peer: Peer, query: string): Promise<Seen> =>
  peer.model('wishes').then(() => peer.rest('management', `/models/wishes?${query}`, { method: 'PUT' }))

const workflow = async (peer: Peer): Promise<void> => {
  await peer.post('/workflows?url=flow.war')
}

const ONE = 'minWorkers: 1\nmaxWorkers: 1\n'
const SEQUENCES = `${ONE}sequenceBatching: true\nmaxNumSequence: 9\nmaxSequenceJobQueueSize: 9\n`
const wishes = (name: string, more = ''): PythonArchive => ({
  ...{ name, handler: source('wishes'), config: `${ONE}${more}` },
})
const ARCHIVES: readonly PythonArchive[] = [
  wishes('wishes'),
  wishes('streams'),
  wishes('late', 'responseTimeout: 1\n'),
  wishes('impatient', 'clientTimeoutInMills: 300\nmaxBatchDelay: 0\n'),
  wishes('narrow', 'jobQueueSize: 1\n'),
  { name: 'several', handler: source('wishes'), config: 'minWorkers: 2\n' },
  { name: 'broken', handler: 'raise ValueError("as wished")\n', config: ONE },
  { name: 'plain', handler: source('plain'), config: ONE },
  { name: 'steps', handler: source('steps'), config: `${ONE}batchSize: 2\ncontinuousBatching: true\n` },
  { name: 'sums', handler: source('sums'), config: `${SEQUENCES}sequenceMaxIdleMSec: 60000\n` },
  ...['turns', 'ends', 'letters'].map((name) => ({
    ...{ name, handler: source('wishes'), config: `${SEQUENCES}sequenceMaxIdleMSec: 60000\n` },
  })),
  { name: 'endless', handler: source('sums'), config: SEQUENCES },
  {
    ...{ name: 'tickets', handler: source('sums') },
    config: `${SEQUENCES}sequenceMaxIdleMSec: 60000\nuseJobTicket: true\n`,
  },
]

let outsideFolder = ''
const outside = (file: string): string => join(outsideFolder, file)

/** Packs the models and workflows of the probes. @param other folder beside the store */
export async function packDifferences(python: TestPython, store: string, other: string): Promise<void> {
  outsideFolder = other
  for (const archive of ARCHIVES) await packPython(python, store, archive)
  await packPython(python, other, wishes('wishes2'))
  await packPython(python, other, { ...wishes('wishes2'), format: 'no-archive' })
  const folder = join(other, 'workflow')
  mkdirSync(folder)
  writeFileSync(join(folder, 'flow.yaml'), 'models:\n  last:\n    url: wishes.mar\ndag:\n  first: [last]\n')
  writeFileSync(
    join(folder, 'flow.py'),
    'def first(data, context):\n    rows = [row.get("body", row.get("data")) for row in data or []]\n' +
      '    return [row if isinstance(row, dict) else bytes(row) for row in rows]\n',
  )
  await execa(
    join(python.bin, 'torch-workflow-archiver'),
    [
      ...['--workflow-name', 'flow', '--spec-file', 'flow.yaml', '--handler', 'flow.py'],
      ...['--export-path', store, '--force'],
    ],
    { cwd: folder, stdin: 'ignore' },
  )
  writeFileSync(join(store, 'no-workflow.war'), 'no archive')
}

/** All rows as one server answers them, by heading and first cell. */
export async function seeDifferences(peer: Peer): Promise<Map<string, Seen>> {
  const seen = new Map<string, Seen>()
  const see = async (key: string, probe: Probe): Promise<void> => {
    seen.set(key, steady(await probe(peer)))
  }
  for (const [heading, rows] of Object.entries(DIFFERENCES))
    for (const [row, probe] of Object.entries(rows))
      if (typeof probe !== 'string') await see(`${heading}: ${row}`, probe)
  for (const [subject, probe] of Object.entries(SAME)) await see(`Coverage: ${subject}`, probe)
  return seen
}

/** Without what changes with every run. */
function steady(seen: Seen): Seen {
  const text = JSON.stringify(seen)
    .replaceAll(outsideFolder, 'FOLDER')
    .replace(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, 'ID')
    .replace(/(?<=under the id )[\da-f]{12}/, 'ID')
    .replace(/(?<="created":)\d+/, '0')
    .replace(/127\.0\.0\.1:\d{4,}/g, 'ADDRESS')
  return JSON.parse(text) as Seen
}

const RECORDING = join(import.meta.dirname, 'torchserve-differences.json')

/** By heading and first cell; the subjects of the coverage are the same on both sides. */
export function readDifferences(): Readonly<Record<string, Recorded>> {
  return JSON.parse(readFileSync(RECORDING, 'utf8')) as Record<string, Recorded>
}

/** Replaces one side of the recording, if UPDATE_RECORDING=1 asks for it. */
export function recordDifferences(side: keyof Recorded, seen: ReadonlyMap<string, Seen>): void {
  if (process.env['UPDATE_RECORDING'] !== '1') return
  const known: Readonly<Record<string, Recorded>> = existsSync(RECORDING) ? readDifferences() : {}
  const rows = [...seen].map(([key, value]) => {
    const { torchserve = null, here = null } = known[key] ?? {}
    const line = JSON.stringify({ torchserve, here, [side]: value })
    return `${JSON.stringify(key)}: ${line}`
  })
  writeFileSync(RECORDING, `{\n${rows.join(',\n')}\n}\n`)
}
